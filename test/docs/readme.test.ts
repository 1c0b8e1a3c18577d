/** README.md: every step from a fresh start to a connected client. */
import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/index.ts';
import { childEnv } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { connectHttp } from '../support/connection.ts';
import { root, runPage, toPattern } from '../support/docs-page.ts';
import { installer } from '../support/installer.ts';
import { alive, descendants, waitFor } from '../support/processes.ts';
import { dataDir, noPython } from '../support/python.ts';
import { tempFolder } from '../support/temp.ts';

describe('README.md', () => {
  it('leads to a working connection in an empty home folder, with every block run unchanged', async () => {
    let url = '';
    await runPage(
      'README.md',
      {
        demo: (text, _, printed) => {
          url = /listening on (\S+)/.exec(printed)![1]!;
          // A server that is slow on the first start is up at once on later starts, and on a busy machine both folders may be slow.
          const shown = text.replace('python      starting', 'python …');
          const busy = printed.includes('… typescript  starting');
          expect(printed).toMatch(toPattern(busy ? shown.replace('✓ typescript  1 tool', '… typescript …') : shown));
        },
        session: (text) => playSession(text, url),
      },
      { isNewcomer: true },
    );
  }, 60_000);
});

/**
 * Plays the session that the page shows. Each line begins with a word: `Listed` and `Hidden` name tools that are or are
 * not in the client's list, `Model` calls a tool, `Answer` is the beginning of what it says.
 */
async function playSession(text: string, url: string): Promise<void> {
  const { client } = await connectHttp(url);
  let answer = '';
  for (const [, who, what] of text.matchAll(/^(\w+) +(.+)$/gm)) {
    const names = what!.match(/\b[a-z]+_[\w-]+/g) ?? [];
    const [, name, args] = /^(\w+) (\{.*\})$/.exec(what!) ?? [];
    if (who === 'Listed' || who === 'Hidden') {
      const { tools } = await client.listTools();
      const listed = tools.map((tool) => tool.name);
      const description = tools.find((tool) => tool.name === 'toolman_activate')!.description!;
      if (who === 'Hidden') expect(description).toContain('memory_*');
      for (const one of names) {
        const isListed = who === 'Listed' || one === 'toolman_activate';
        expect(listed.includes(one), `${who} ${one}`).toBe(isListed);
      }
    } else if (who === 'Model' && name !== undefined) {
      const result = await client.callTool({ name, arguments: JSON.parse(args!) });
      expect(result.isError ?? false).toBe(false);
      answer = (result.content as { text: string }[])[0]!.text;
    } else if (who === 'Answer') expect(answer).toContain(what!);
  }
}

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
      await waitFor(() => below.every((pid) => !alive(pid)));
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
