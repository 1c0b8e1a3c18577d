/** The tool folders in examples/, copied into a data folder as their README says, and every tool in them called. */
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { prepareNode } from '../../src/workers/node-environment.ts';
import { preparePython } from '../../src/workers/python-environment.ts';
import { atEnd } from '../support/cleanup.ts';
import { type Dock, dockEnv, startDock } from '../support/dock.ts';
import { root } from '../support/docs-page.ts';
import { KEY, openStore } from '../support/killing.ts';
import { waitFor } from '../support/processes.ts';
import { noPython, dataDir as prepared } from '../support/python.ts';
import { tempFolder } from '../support/temp.ts';

const examples = join(root, 'examples');
const folders = readdirSync(examples).filter((name) => /-tool(-ts)?$/.test(name));

const WEATHER = { name: 'Berlin', main: { temp: 21.5, humidity: 40 }, weather: [{ description: 'clear sky' }] };

/** Every tool of the examples, without the name of its folder: arguments and what it returns. */
const CALLS: [folder: string, tool: string, args: Record<string, unknown>, returned: unknown][] = [
  ['basic-tool', 'say_hello', { name: 'Ada' }, 'Hello, Ada!'],
  ['basic-tool', 'say_hello', {}, 'Hello, World!'],
  [
    'async-tool',
    'get_weather',
    { city: 'Berlin' },
    { city: 'Berlin', temperature: 21.5, description: 'clear sky', humidity: 40 },
  ],
  ['multi-tool', 'add', { a: 1.5, b: 2 }, 3.5],
  ['multi-tool', 'multiply', { a: 1.5, b: 2 }, 3],
  ['multi-tool', 'reverse', { text: 'abc' }, 'cba'],
  ['multi-tool', 'count_words', { text: 'one two  three' }, 3],
];

/** The same for each language. */
const ALL = CALLS.flatMap(([folder, ...rest]) =>
  [folder, `${folder}-ts`].filter((name) => folders.includes(name)).map((name) => [name, ...rest] as const),
);

let dock: Dock;
const requests: URL[] = [];
beforeAll(async () => {
  const weather = createServer((request, response) => {
    requests.push(new URL(request.url!, 'http://weather'));
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(WEATHER));
  });
  await new Promise<void>((resolve) => weather.listen(0, '127.0.0.1', resolve));
  atEnd(() => weather.close());

  const cwd = tempFolder();
  const data = join(cwd, '.toolgate');
  mkdirSync(join(data, 'venvs'), { recursive: true });
  for (const name of folders) {
    const folder = join(data, 'tools', name);
    cpSync(join(examples, name), folder, { recursive: true });
    await linkPackages(name, folder, join(data, 'venvs'));
    pointTo(`http://127.0.0.1:${(weather.address() as AddressInfo).port}`, folder);
  }
  await openStore(data).set('WEATHER_API_KEY', null, 'a-key-for-the-weather');
  dock = await startDock({}, { cwd, env: { SECRETS_KEY: KEY } });
  await waitFor(
    async () => (await dock.names()).length >= new Set(ALL.map(([name, tool]) => name + tool)).size,
    60_000,
  );
}, 300_000);

/** Packages are installed once, and kept for the next run. */
async function linkPackages(namespace: string, folder: string, venvs: string): Promise<void> {
  const files = readdirSync(folder);
  const env = { ...process.env, ...dockEnv() };
  const request = {
    namespace: `example-${namespace}`,
    folder,
    dataDir: prepared,
    env,
    progress: () => {},
    signal: null,
    isolation: 'auto',
    packages: 'registry',
  } as const;
  const kept = join(prepared, 'venvs', request.namespace);
  if (files.includes('requirements.txt')) {
    await preparePython(request);
    symlinkSync(kept, join(venvs, namespace));
  }
  if (files.includes('package.json')) {
    await prepareNode(request);
    symlinkSync(`${kept}.node`, join(venvs, `${namespace}.node`));
  }
}

/** The one change to an example: its service is on this machine. */
function pointTo(origin: string, folder: string): void {
  if (!readdirSync(folder).includes('tooldock.yaml')) return;
  const file = join(folder, 'tooldock.yaml');
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('https://api.openweathermap.org');
  writeFileSync(file, text.replace('https://api.openweathermap.org', origin));
}

describe.skipIf(noPython !== undefined)('the tool folders in examples/', () => {
  it('offer exactly the tools that are called here', async () => {
    expect((await dock.names()).sort()).toEqual([...new Set(ALL.map(([name, tool]) => `${name}_${tool}`))].sort());
  });

  it.each(ALL)('%s: %s %j returns %j', async (folder, tool, args, returned) => {
    const { text, isError } = await dock.call(`${folder}_${tool}`, args);
    expect(isError, text).toBe(false);
    expect(typeof returned === 'string' ? text : JSON.parse(text)).toEqual(returned);
  });

  it('give their secret to the tools that declare it', async () => {
    requests.length = 0;
    const asking = folders.filter((name) => name.startsWith('async-tool'));
    for (const name of asking) await dock.call(`${name}_get_weather`, { city: 'New York', units: 'imperial' });
    expect(requests.map(({ pathname, searchParams }) => [pathname, Object.fromEntries(searchParams)])).toEqual(
      asking.map(() => ['/data/2.5/weather', { q: 'New York', units: 'imperial', appid: 'a-key-for-the-weather' }]),
    );
  });
});
