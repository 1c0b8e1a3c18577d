/** README.md: every step from a fresh start to a connected client. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/index.ts';
import { childEnv, startChild } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { connectHttp, openPipe } from '../support/connection.ts';
import { root, runPage, type Sandbox, toPattern } from '../support/docs-page.ts';
import { installer } from '../support/installer.ts';
import { alive, descendants, waitFor } from '../support/processes.ts';
import { dataDir, noPython } from '../support/python.ts';
import { tempFolder } from '../support/temp.ts';

describe('README.md', () => {
  it('leads to a working connection, with every block run unchanged', async () => {
    const open = async ({ env, home }: Sandbox) => {
      // The command must come from `npm install -g .`, not from the sandbox.
      expect(existsSync(join(home, '.npm-global', 'bin', 'toolgate'))).toBe(true);
      const args = ['--config', join(home, 'toolgate', 'tools.toml')];
      const pipe = openPipe(startChild('toolgate', args, { cwd: tempFolder(), env, ending: 'stdin' }));
      await pipe.connect();
      return pipe;
    };
    await runPage('README.md', {
      // A server that is slow on the first start is up at once on later starts.
      demo: (text, _, printed) => expect(printed).toMatch(toPattern(text.replace('python      starting', 'python …'))),
      toolman_activate: async (text, sandbox) => {
        const { client, changes } = await open(sandbox);
        const { tools } = await client.listTools();
        expect(tools[0]!.name).toBe('toolman_activate');
        if (!text.startsWith('{')) {
          expect(tools[0]!.description).toMatch(toPattern(text));
          return;
        }
        await client.callTool({ name: 'toolman_activate', arguments: JSON.parse(text) });
        await waitFor(() => changes('tools') === 1);
        const after = (await client.listTools()).tools.map((tool) => tool.name);
        expect(after).toEqual(expect.arrayContaining(['memory_create_entities', 'files_read_text_file']));
        expect(after.length).toBeGreaterThan(tools.length);
      },
    });
  }, 60_000);
});

describe('npm start', () => {
  it.skipIf(noPython !== undefined)(
    'prints the URL, how to connect and what is served, in this order, and leaves no process behind after Ctrl-C',
    async () => {
      // Reuses the existing environment of Python tools.
      const env = childEnv({
        HOME: tempFolder(),
        npm_config_update_notifier: 'false',
        DATA_DIR: dataDir,
        ...installer,
      });
      // A process group of its own, as in a terminal: Ctrl-C reaches all of its processes at once.
      const child = spawn('npm', ['start', '--', '--port', '0'], { cwd: root, env, detached: true });
      const group = -child.pid!;
      atEnd(() => kill(group, 'SIGKILL'));
      let output = '';
      let errors = '';
      child.stdout.on('data', (chunk) => {
        output += String(chunk);
      });
      child.stderr.on('data', (chunk) => {
        errors += String(chunk);
      });
      const exited = new Promise((resolve) => child.once('exit', (code) => resolve(code)));
      await waitFor(() => {
        if (child.exitCode !== null) throw new Error(`npm start ended:\n${output}${errors}`);
        return /✓ python/.test(output);
      }, 60_000);
      const url = /listening on (\S+)/.exec(output)![1]!;
      const order = [
        'listening on',
        'claude mcp add',
        '"mcpServers"',
        'Serving:',
        'everything',
        'files',
        'memory',
        'typescript',
      ];
      const places = order.map((word) => output.indexOf(word));
      expect(places).toEqual([...places].sort((a, b) => a - b));
      expect(places).not.toContain(-1);

      const { client } = await connectHttp(url);
      const names = (await client.listTools()).tools.map((tool) => tool.name);
      expect(names).toEqual(expect.arrayContaining(['toolman_activate', 'everything_echo', 'files_list_directory']));
      expect(names.some((name) => name.startsWith('memory_'))).toBe(false);
      const args = { path: 'shopping.txt' };
      const result = await client.callTool({ name: 'files_read_text_file', arguments: args });
      expect(JSON.stringify(result.content)).toContain('tea');

      for (const name of ['typescript_say_hello', 'python_say_hello']) {
        const { content } = await client.callTool({ name, arguments: { name: 'Ada' } });
        expect(JSON.stringify(content)).toContain('Hello, Ada!');
      }

      const below = descendants(child.pid!);
      expect(below.length).toBeGreaterThanOrEqual(4);
      kill(group, 'SIGINT');
      await exited;
      await waitFor(() => below.every((pid) => !alive(pid)), 10_000);
    },
    90_000,
  );
});

describe('examples', () => {
  it.each(['examples/demo/toolgate.toml', 'examples/tools.toml', 'examples/personas/toolgate.toml'])(
    '%s is a valid configuration',
    async (path) => {
      const config = await loadConfig({ cwd: root, env: { HOME: '/home/you' }, path });
      expect(config.notices).toEqual([]);
      expect(config.servers.length).toBeGreaterThan(1);
    },
  );
});

function kill(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(group, signal);
  } catch {
    // The process has already exited.
  }
}
