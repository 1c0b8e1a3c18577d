/** Limits of agents: each agent has its own counters, and the operator has none. */
import { describe, expect, it } from 'vitest';
import { open, openPipes } from '../support/open-gateway.ts';
import { basic, begin, beginMany, doorOf, hanging, refusalOf, textOf } from './limits.ts';

describe('the limits of an agent', () => {
  it('are counted per agent, over all its servers and sessions', async () => {
    const { gateway } = await open({ s: basic(), t: basic() }, { default_policy: { limits: { rate: '2/h' } } });
    for (const agent of ['one', 'two']) {
      await textOf(begin(doorOf(gateway, agent), 's_count'));
      await textOf(begin(doorOf(gateway, agent), 't_count'));
      expect((await refusalOf(begin(doorOf(gateway, agent), 's_count'))).message).toMatch(
        new RegExp(`^Agent "${agent}" has reached its "rate" of 2/h\\.`),
      );
    }
    for (let i = 0; i < 5; i++) await textOf(begin(doorOf(gateway), 's_count'));
  });

  it('limit all concurrent calls of the agent together, of any kind', async () => {
    const { gateway } = await open(
      { s: hanging(), t: basic() },
      { agent_policies: { bot: { limits: { concurrency: 2, queue: 1 } } } },
    );
    const bot = doorOf(gateway, 'bot');
    const [first] = beginMany(bot, 2, 's_hang');
    const waiting = begin(bot, 't_count');
    expect((await refusalOf(begin(bot, 't_count'))).message).toMatch(/^Agent "bot" is busy: 2 calls under way and 1/);
    expect(await textOf(begin(doorOf(gateway, 'other'), 't_count'))).toBe('1');
    first!.cancel();
    expect(await textOf(waiting)).toBe('2');
  });

  it('can apply to single tools, and can only reduce timeouts and sizes', async () => {
    const { gateway } = await open(
      { s: hanging({ tools: { slow: { timeout: 100 } } }), t: basic({ max_result: 200 }) },
      {
        agent_policies: {
          bot: {
            limits: { timeout: '5s', max_result: 1_000 },
            tool_limits: {
              's.hang': { timeout: 150 },
              't.ec*': { calls_per_day: 1, max_result: 50, max_arguments: 10 },
              't.*': { rate: '1/h' },
            },
          },
        },
      },
    );
    const bot = doorOf(gateway, 'bot');
    expect((await refusalOf(begin(bot, 's_hang'))).message).toContain('within 0.15 s');
    expect((await refusalOf(begin(bot, 's_slow', { ms: 3_000 }))).message).toContain('within 0.1 s');
    expect((await refusalOf(begin(bot, 't_echo', { a: 'too much' }))).message).toContain(
      '(Agent "bot" with the tool "t_echo")',
    );
    await textOf(begin(bot, 't_echo'));
    expect((await refusalOf(begin(bot, 't_echo'))).message).toMatch(
      /^Agent "bot" with the tool "t_echo" has reached its "calls_per_day" of 1\./,
    );
    const json = JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(300) }] });
    expect((await bot.callTool('t_raw', { json })).toString()).toContain('Toolgate cut this result');
    expect((await refusalOf(begin(bot, 't_raw', { json }))).message).toMatch(/"rate" of 1\/h/);
    // Each tool that matches the pattern has its own limit.
    await textOf(begin(bot, 't_count'));
  });

  it('can be set in a policy without restricting access, and apply to stdio clients', async () => {
    const { gateway } = await open({ s: basic() }, { agent_policies: { default: { limits: { rate: '1/h' } } } });
    const pipes = await openPipes(gateway, 'legacy');
    const call = async () => {
      const { result } = await pipes.ask('tools/call', { name: 's_count', arguments: {} });
      return (result!.content as { text: string }[])[0]!.text;
    };
    expect(await call()).toBe('1');
    expect(await call()).toContain('rate_limited');
  });

  it('keep their counters when the configuration is applied again', async () => {
    const { gateway } = await open(
      { s: hanging() },
      { agent_policies: { bot: { limits: { rate: '3/h', concurrency: 1, queue: 0 } } } },
    );
    const bot = doorOf(gateway, 'bot');
    const running = begin(bot, 's_hang');
    gateway.apply({ ...gateway.config });
    expect((await refusalOf(begin(bot, 's_ok'))).code).toBe('source_busy');
    running.cancel();
    await textOf(begin(bot, 's_ok'));
    gateway.apply({ ...gateway.config });
    await textOf(begin(bot, 's_ok'));
    expect((await refusalOf(begin(bot, 's_ok'))).code).toBe('rate_limited');
    gateway.apply({ ...gateway.config, policy: null });
    await textOf(begin(bot, 's_ok'));
  });
});
