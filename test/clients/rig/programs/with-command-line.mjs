// Command line clients, each command a process of its own: list, activate, list again, call.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const { client, packages, url, command, entry } = JSON.parse(process.argv[2]);
const start = promisify(execFile);

const ACTIVATE = { tools_on: ['memory_*'], tools_off: [], resources_on: [], resources_off: [] };
const ENTITIES = { entities: [{ name: 'user', entityType: 'person', observations: ['likes tea'] }] };

async function run(file, ...args) {
  const { stdout } = await start(process.execPath, [join(packages, file), ...args], { maxBuffer: 2 ** 26 });
  return JSON.parse(stdout);
}

const clients = {
  mcporter() {
    writeFileSync('mcporter.json', entry);
    const mcporter = (...args) => run('mcporter/dist/cli.js', '--config', 'mcporter.json', ...args);
    return {
      list: async () => (await mcporter('list', 'toolgate', '--json')).tools,
      call: (name, args) => mcporter('call', `toolgate.${name}`, '--args', JSON.stringify(args), '--output', 'json'),
      resources: async () => (await mcporter('resource', 'toolgate', '--json')).resources,
      end: () =>
        start(process.execPath, [
          join(packages, 'mcporter/dist/cli.js'),
          '--config',
          'mcporter.json',
          'daemon',
          'stop',
        ]),
    };
  },
  inspector() {
    // It takes `--config` for itself.
    const target = url ? [url, '--transport', 'http'] : ['-e', `TOOLGATE_CONFIG=${command[2]}`, command[0]];
    const inspect = (...args) =>
      run(
        '@modelcontextprotocol/inspector/clients/launcher/build/index.js',
        '--cli',
        ...target,
        ...args,
        '--format',
        'json',
        '-q',
      );
    return {
      list: async () => (await inspect('--method', 'tools/list')).result.tools,
      call: (name, args) => {
        const given = Object.entries(args).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
        return inspect('--method', 'tools/call', '--tool-name', name, '--tool-arg', ...given);
      },
      resources: async () => (await inspect('--method', 'resources/list')).result.resources,
    };
  },
};

const { list, call, resources, end } = clients[client]();
try {
  const before = await list();
  await call('toolman_activate', ACTIVATE);
  const after = (await list()).map(({ name }) => name);
  const tool = after.includes('memory_create_entities') ? 'memory_create_entities' : 'toolman_call';
  const args = tool === 'toolman_call' ? { name: 'memory_create_entities', arguments: ENTITIES } : ENTITIES;
  const answer = await call(tool, args).catch(({ stdout, stderr }) => `${stdout}${stderr}`);
  const report = {
    before: Object.fromEntries(before.map(({ name, description }) => [name, description])),
    after,
    answer: JSON.stringify(answer),
    resources: await resources().then((found) => found.length, String),
  };
  console.log(`REPORT ${JSON.stringify(report)}`);
} finally {
  await end?.();
}
