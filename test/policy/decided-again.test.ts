/** A call that has waited is decided again: the policy may have changed meanwhile. */
import { expect, it } from 'vitest';
import { configFromValue, type GatewayError, openLocalDoor } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { openGateway } from '../support/in-process-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const cwd = tempFolder();
const configOf = (more: object) =>
  configFromValue(
    {
      mcpServers: { s: serverEntry('basic', '--tools', 'count,echo') },
      security: { dangerous_tools: { s: ['echo'] }, approvers: 'operator' },
      macros: {
        both: {
          description: 'x',
          steps: ['a', 'b', 'c'].map((id, i) => ({ id, tool: i === 1 ? 's.echo' : 's.count' })),
        },
      },
      ...more,
    },
    { cwd, env: {} },
  );

async function start() {
  const gateway = await openGateway(configOf({ denied_tools: {} }));
  atEnd(() => gateway.close());
  const door = openLocalDoor(gateway, 'own', 'alice');
  atEnd(() => door.close());
  const call = (name: string, args: object = {}) =>
    door.callTool(name, args).then(
      (result) => ({ result: result.toString(), error: null }),
      (error: GatewayError) => ({ result: null, error }),
    );
  const approve = async () => {
    const request = await waitFor(() => gateway.approvals.list()[0] ?? null);
    return () => gateway.approvals.decide(request.id, { approved: true, by: 'the test', lasting: null, reason: '' });
  };
  return { gateway, call, approve };
}

it('does not run if the policy closed its tool before a person approved it', async () => {
  const { gateway, call, approve } = await start();
  const calling = call('s_echo', { text: 'hidden' });
  const decide = await approve();
  gateway.apply(configOf({ denied_tools: { s: ['echo'] } }));
  decide();
  const { result, error } = await calling;
  expect([result, error?.code]).toEqual([null, 'item_unknown']);
  expect(error?.message).toContain('The policy no longer allows "s_echo"');
});

it('does not run if the policy no longer allows its arguments', async () => {
  const { gateway, call, approve } = await start();
  const calling = call('s_echo', { path: 'b' });
  const decide = await approve();
  gateway.apply(configOf({ conditions: [{ tools: ['s.echo'], paths: { path: 'a' } }] }));
  decide();
  expect((await calling).error?.code).toBe('arguments_denied');
});

it('runs if the policy still allows it', async () => {
  const { gateway, call, approve } = await start();
  const calling = call('s_echo', { path: 'b' });
  const decide = await approve();
  gateway.apply(configOf({ denied_tools: { s: ['count'] } }));
  decide();
  expect((await calling).result).toContain('path');
});

it('ends a macro at the first step that is no longer allowed', async () => {
  const { gateway, call, approve } = await start();
  const calling = call('both');
  const decide = await approve();
  gateway.apply(configOf({ denied_tools: { s: ['count'] } }));
  decide();
  const { result, error } = await calling;
  expect(`${result} ${error?.message}`).toContain(
    'failed in step 3 of 3, "c" (s.count): The tool "s.count" is not available',
  );
});
