/** Macros whose steps need an answer: to a question of a server, or an approval by a person. */
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { accept, answersTo, askedIn, callModern, jsonOf, openLegacy } from '../support/questions.ts';
import { server, serversToml } from '../support/server.ts';

const CONFIG = `controls = []
[security]
approvers = "client"
dangerous_tools = { "*" = ["category:destructive"] }
${serversToml({ asking: server('asking'), notes: server('basic', '--tools', 'get_note,delete_note') })}
[macros.inquire]
description = "Asks, and looks"
[[macros.inquire.steps]]
id = "look"
tool = "notes.get_note"
[[macros.inquire.steps]]
id = "ask"
tool = "asking.ask"
arguments = { questions = 1, word = "colour" }

[macros.tidy]
description = "Looks, and deletes"
[[macros.tidy.steps]]
id = "look"
tool = "notes.get_note"
[[macros.tidy.steps]]
id = "delete"
tool = "notes.delete_note"
arguments = { which = "\${steps.look.tool}" }
`;

let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({ config: CONFIG });
});

describe('a question of a server during a step', () => {
  it('goes to the client that called the macro', async () => {
    const { client, questions } = await openLegacy(gateway, accept);
    const result = (await client.callTool({ name: 'inquire', arguments: {} })) as object;
    expect(questions).toHaveLength(1);
    expect(JSON.stringify(jsonOf(result))).toContain(`re ${questions[0]}`);
  });

  it('also goes to a modern client, which calls again with the answer', async () => {
    const first = await callModern(gateway, 'inquire');
    expect(askedIn(first)).toHaveLength(1);
    const second = await callModern(gateway, 'inquire', {}, answersTo(first));
    expect(JSON.stringify(jsonOf(second.result))).toContain('yes');
  });
});

describe('a step that a person has to approve', () => {
  it.each([
    ['accept', /"tool":"delete_note","arguments":\{"which":"get_note"\}/],
    ['decline', /failed in step 2 of 2, .*delete.*needs the approval of a person.*Done before it: .*look/],
  ] as const)('%s', async (action, said) => {
    // The macro is destructive too, so both need an approval.
    const { client, questions } = await openLegacy(gateway, (message) => ({
      action: message.includes('notes_delete_note') ? action : 'accept',
    }));
    const result = await client.callTool({ name: 'tidy', arguments: {} });
    expect(questions).toEqual([expect.stringContaining('tidy'), expect.stringContaining('notes_delete_note')]);
    expect(JSON.stringify(result).replaceAll('\\', '')).toMatch(said);
  });
});

it('reports an unknown category in security.confirm', async () => {
  const { code, stdout } = await runCli(['doctor'], { config: CONFIG.replace('category:destructive', 'category:bad') });
  expect([code, stdout]).toEqual([2, expect.stringContaining('there is no category "bad"')]);
});
