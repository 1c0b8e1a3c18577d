/** Clients of both major versions of the Python SDK. Version 1 supports only the older era. */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { bin, startHttp } from '../support/gateway.ts';
import { isMissingPython, pythonProgram } from '../support/needs.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { runTool } from '../support/tools.ts';
import { onePart, some } from '../support/wide.ts';
import { configWith } from './clients.ts';

const program = fileURLToPath(new URL('client.py', import.meta.url));

type Version = 'v1' | 'v2';
type Transport = 'stdio' | 'http' | 'sse';
type Mode = 'legacy' | '2026-07-28';
type Step = readonly [verb: string, ...args: unknown[]];

interface Outcome {
  readonly revision: string;
  readonly answers: Record<string, unknown>[];
  readonly heard: unknown[][];
}

async function drive(
  version: Version,
  transport: Transport,
  mode: Mode,
  config: string,
  steps: readonly Step[],
): Promise<Outcome> {
  const way =
    transport === 'stdio'
      ? {
          command: {
            command: process.execPath,
            args: [bin, '--trust', '--no-shared'],
            cwd: tempFolder({ 'tools.toml': config }),
          },
        }
      : { url: (await startHttp({ config })).origin + (transport === 'sse' ? '/sse' : '/mcp') };
  const job = JSON.stringify({ ...way, transport, mode, steps });
  const { stdout, stderr } = await runTool(pythonProgram(version), [program], { input: job });
  expect(stdout, stderr).toMatch(/^\{/);
  return JSON.parse(stdout) as Outcome;
}

const steps = {
  tools: ['list_tools'],
  resources: ['list_resources'],
  templates: ['list_resource_templates'],
  prompts: ['list_prompts'],
  read: ['read_resource', 'test://static-text'],
  expanded: ['read_resource', 'test://template/7/data'],
  prompt: ['get_prompt', 'test_prompt_with_arguments', { arg1: 'one', arg2: 'two' }],
  call: ['call_tool', 'test_multiple_content_types', {}],
  progress: ['call_tool', 'test_tool_with_progress', {}],
  fails: ['call_tool', 'test_error_handling', {}],
  unknownTool: ['call_tool', 'test_simple_tex', {}],
  unknownResource: ['read_resource', 'test://nothing'],
  elicitation: ['call_tool', 'test_elicitation', { message: 'Who are you?' }],
  sampling: ['call_tool', 'test_sampling', { prompt: 'Say a word.' }],
  logging: ['call_tool', 'test_tool_with_logging', {}],
  watch: ['watch', 'changing://first', 'touch_resource', { uri: 'changing://first' }],
} satisfies Record<string, Step>;

describe.skipIf(isMissingPython('v1') || isMissingPython('v2'))('the Python SDK', () => {
  const clients: [Version, Transport, Mode][] = [
    ['v1', 'stdio', 'legacy'],
    ['v1', 'http', 'legacy'],
    ['v1', 'sse', 'legacy'],
    ['v2', 'stdio', 'legacy'],
    ['v2', 'http', 'legacy'],
    ['v2', 'sse', 'legacy'],
    ['v2', 'stdio', '2026-07-28'],
    ['v2', 'http', '2026-07-28'],
  ];
  /** One of the two that differ most. */
  const few = clients.filter((_, i) => i === 0 || i === 7);
  describe.each(some(clients, onePart(few.length, few)))('%s over %s, %s', (version, transport, mode) => {
    const isLegacy = mode === 'legacy';
    let outcome: Outcome;
    const answerTo = (step: keyof typeof steps) => outcome.answers[Object.keys(steps).indexOf(step)];
    const heard = (what: string) => outcome.heard.filter(([kind]) => kind === what).map(([, ...rest]) => rest);

    beforeAll(async () => {
      const config = configWith(isLegacy ? 'modern' : 'legacy');
      outcome = await drive(version, transport, mode, config, Object.values(steps));
    });

    it('negotiates a revision and lists', () => {
      expect(outcome.revision).toBe(isLegacy ? '2025-11-25' : '2026-07-28');
      const among = (...items: object[]) => expect.arrayContaining(items.map((item) => expect.objectContaining(item)));
      expect(answerTo('tools')).toMatchObject({ tools: among({ name: 'test_simple_text' }, { name: 'add_tool' }) });
      expect(answerTo('resources')).toMatchObject({
        resources: among({ uri: 'test://static-text' }, { uri: 'changing://first' }),
      });
      expect(answerTo('templates')).toMatchObject({
        resourceTemplates: among({ uriTemplate: 'test://template/{id}/data' }),
      });
      expect(answerTo('prompts')).toMatchObject({ prompts: among({ name: 'test_simple_prompt' }, { name: 'first' }) });
    });

    it('reads resources, gets prompts and calls tools', () => {
      expect(answerTo('read')).toMatchObject({ contents: [{ text: 'A text that stays as it is.' }] });
      expect(answerTo('expanded')).toMatchObject({ contents: [{ uri: 'test://template/7/data' }] });
      expect(JSON.stringify(answerTo('prompt'))).toContain("'one' and 'two'");
      expect(answerTo('call')).toMatchObject({
        isError: false,
        content: [{ type: 'text' }, { type: 'image' }, { type: 'resource' }],
      });
    });

    it('gets all progress, in order', () => {
      expect(answerTo('progress')).toMatchObject({ content: [{ text: 'done' }] });
      expect(heard('progress')).toEqual([0, 50, 100].map((progress) => [progress, 100]));
    });

    it('receives errors', () => {
      expect(answerTo('fails')).toMatchObject({ isError: true, content: [{ text: 'It fails on purpose.' }] });
      expect(answerTo('unknownTool')).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining('test_simple_text') }],
      });
      expect(answerTo('unknownResource')).toMatchObject({
        error: { code: isLegacy ? -32002 : -32602, message: expect.stringContaining('There is no resource') },
      });
    });

    it('answers requests from the server', () => {
      expect(heard('elicitation')).toEqual([[expect.stringMatching(/^Server ".+" asks: Who are you\?$/)]]);
      expect(JSON.stringify(answerTo('elicitation'))).toContain('ada@example.org');
      expect(JSON.stringify(heard('sampling'))).toContain('Say a word.');
      expect(JSON.stringify(answerTo('sampling'))).toContain('a word');
    });

    it('receives log messages, and updates of a subscribed resource', () => {
      expect(heard('log')).toEqual(['started', 'working', 'finished'].map((step) => ['info', `Tool ${step}`]));
      expect(answerTo('watch')).toBe('changing://first');
      expect(heard('exception')).toEqual([]);
    });
  });

  // Version 1 parses every URI as a URL and refuses a list with another one. Version 2 has the same name before 2026.
  const prefixed = [
    ['v1', 'legacy', ['my..c+changing://first', 'b+-:odd_app://a%20b'], 'my..c+changing://first'],
    ['v2', 'legacy', ['my..c+changing://first', 'b+-:odd_app://a%20b'], 'my_c_changing://first'],
    ['v2', '2026-07-28', ['my_c_changing://first', 'b_odd_app://a b'], 'my..c+changing://first'],
  ] as const;
  it.each(onePart(prefixed.length, prefixed))(
    '%s of the era %s lists, reads and watches resources under a prefix',
    async (version, mode, uris, read) => {
      const odd = server('basic', '--name', 'b', '--resources', 'odd_app://a b');
      const config = `active_toolsets = ["*"]\n${serversToml({ my_c: server('changing'), b: odd })}`;
      const { answers } = await drive(version, 'stdio', mode, config, [
        ['list_resources'],
        ['list_resource_templates'],
        ['read_resource', uris[0]],
        ['read_resource', 'changing://first'],
        ['watch', read, 'my_c_touch_resource', { uri: 'changing://first' }],
      ]);
      const [listed, templates, ...others] = answers;
      expect(listed).toMatchObject({ resources: uris.map((uri) => ({ uri })) });
      const prefix = uris[0].replace('changing://first', '');
      expect(templates).toMatchObject({ resourceTemplates: [{ uriTemplate: `${prefix}changing://first/{id}` }] });
      const first = { contents: [{ text: 'changing://first from changing' }] };
      expect(others).toMatchObject([first, first, read]);
    },
  );
});
