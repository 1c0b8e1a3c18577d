/** Random walks of agents under random policies: what one has learned is never noticed by another, or under another view. */
import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { configFromValue, type Gateway, openHttpDoor } from '../../src/index.ts';
import { type Ask, openAsk } from '../support/asking.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { AGENTS, NAMES, naivelyAllowed, type RandomPolicy, randomPolicy, SERVERS } from '../support/policies.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { runs } from '../support/wide.ts';

const cwd = tempFolder();
const mcpServers = Object.fromEntries(
  SERVERS.map((name) => [name, serverEntry('basic', '--name', name, '--tools', NAMES.tool.join())]),
);
const configOf = (policy: RandomPolicy, learn: boolean) =>
  configFromValue(
    { mcpServers, controls: ['search'], search: { learn }, http: { trust_agent_header: true }, ...policy },
    { cwd, env: {} },
  );
const tools = SERVERS.flatMap((server) => NAMES.tool.map((name) => ({ server, name })));

/** Words that no server uses: what finds something by one of them was learned. */
const WORDS = ['xylophone', 'marzipan', 'quokka', 'zeppelin', 'flugelhorn'];

let gateway: Gateway;
const asks = new Map<string, Ask>();

beforeAll(async () => {
  gateway = createGateway(configOf({}, true));
  atEnd(() => gateway.close());
  const door = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => door.close());
  await gateway.tried();
  for (const agent of AGENTS)
    asks.set(
      agent,
      await openAsk('modern http', gateway, `http://127.0.0.1:${door.port}`, agent, { 'x-agent-id': agent }),
    );
});

async function textOf(agent: string, name: string, args: object): Promise<string> {
  const { result, error } = await asks.get(agent)!('tools/call', { name, arguments: args });
  return error?.message ?? (result!.content as { text: string }[]).map(({ text }) => text).join('\n');
}

const step = fc.record({
  policy: fc.option(randomPolicy, { nil: undefined, freq: 3 }),
  learn: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  agent: fc.constantFrom(...AGENTS),
  word: fc.constantFrom(...WORDS),
  tool: fc.constantFrom(...tools),
  /** Whether the tool that it looks for is then called. */
  calls: fc.boolean(),
});

/** The words that each agent has searched: a call may follow from any of its last searches. */
const typed = new Map<string, Set<string>>(AGENTS.map((agent) => [agent, new Set()]));

it('what was learned counts only for the same agent, while the same is open to it', { timeout: 600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), async (steps) => {
      gateway.examples.forget();
      /** Who has learned which words for which tool, and what was open to it then. */
      const lessons: { agent: string; open: string; word: string; tool: string }[] = [];
      let policy: RandomPolicy = {};
      for (const { policy: next, learn, agent, word, tool, calls } of steps) {
        policy = next ?? policy;
        gateway.apply(configOf(policy, learn));
        const isOpen = (one: (typeof tools)[number]) => naivelyAllowed(policy, agent, one.server, 'tool', one.name);
        const open = JSON.stringify(tools.filter(isOpen));
        const before = await textOf(agent, 'search_tools', { queries: [word], limit: 20 });
        const own = lessons.filter((one) => one.agent === agent && one.word === word && one.open === open);
        // No text of a server has the word: only this agent's own lessons under an equal view can find anything.
        if (own.length === 0 || !learn) expect(before).toContain('Nothing matches');
        for (const one of tools.filter((each) => !isOpen(each)))
          expect(before).not.toMatch(new RegExp(`^${one.server}_${one.name}\\b`, 'm'));
        const exposed = `${tool.server}_${tool.name}`;
        typed.get(agent)!.add(word);
        await textOf(agent, 'search_tools', { queries: [`${word} ${exposed}`], limit: 20 });
        if (!calls) continue;
        await textOf(agent, 'call_tool', { name: exposed });
        if (!learn || !isOpen(tool)) continue;
        for (const one of typed.get(agent)!)
          lessons.push({ agent, open, word: one, tool: `${tool.server}.${tool.name}` });
      }
      for (const { agent, tools: learned } of gateway.examples.all())
        for (const [tool, queries] of Object.entries(learned)) {
          expect(queries.length).toBeLessThanOrEqual(20);
          // Every query was typed by that agent, and led to a call of that tool that was open to it.
          for (const query of queries)
            expect(lessons).toContainEqual(
              expect.objectContaining({ agent, tool, word: expect.stringMatching(query.split(' ')[0]!) }),
            );
        }
    }),
    { numRuns: runs(100) },
  );
});
