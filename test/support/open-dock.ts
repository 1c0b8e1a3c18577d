/** A gateway in this process with folders of tools, whose workers are real processes. */
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { configFromValue, type Gateway, openGateway } from '../../src/index.ts';
import { childEnv } from './child.ts';
import { atEnd } from './cleanup.ts';
import { type Called, dockEnv, save, sharedPython } from './dock.ts';
import { waitFor } from './processes.ts';
import { type Files, tempFolder, writeFiles } from './temp.ts';

export interface OpenDock {
  readonly gateway: Gateway;
  /** The data folder. */
  readonly dataDir: string;
  /** What the gateway has reported, as JSON. */
  readonly notes: string[];
  call(name: string, args?: Record<string, unknown>): Promise<Called>;
  /** The listed tools, sorted. */
  names(): string[];
  /** Writes a file of a namespace as editors do. */
  put(path: string, text: string): void;
  remove(path: string): void;
  /** Waits until the tool gives this answer. */
  answers(name: string, text: string): Promise<void>;
  /** Waits until exactly these tools are listed. */
  lists(...names: string[]): Promise<void>;
}

/** How long a worker may need to take up an edit on a busy machine. */
const TAKEN_UP = 60_000;

export async function openDock(
  files: Files,
  more: object = {},
  env: Record<string, string> = {},
  home: string = tempFolder(),
): Promise<OpenDock> {
  const dataDir = join(home, '.toolgate');
  const tools = join(dataDir, 'tools');
  writeFiles(tools, files);
  mkdirSync(join(dataDir, 'venvs'), { recursive: true });
  const isPython = Object.keys(files).some((path) => path.endsWith('.py'));
  if (isPython && !existsSync(join(dataDir, 'venvs/_base')))
    symlinkSync(await sharedPython(), join(dataDir, 'venvs/_base'));
  const variables = childEnv({ HOME: home, ...dockEnv(), ...env });
  const gateway = await openGateway(configFromValue({ controls: [], ...more }, { cwd: home, env: variables }), {
    env: variables,
  });
  atEnd(() => gateway.close());
  const notes: string[] = [];
  gateway.events.listen((name, event) => {
    if (name === 'note' || name === 'source') notes.push(JSON.stringify(event));
  });
  const call = async (name: string, args: Record<string, unknown> = {}): Promise<Called> => {
    const { content, isError } = await gateway.call(name, args);
    const [first] = content;
    return { text: first?.type === 'text' ? first.text : '', isError: isError === true };
  };
  const names = () => [...gateway.catalog.entries.tool.keys()].sort();
  return {
    gateway,
    dataDir,
    notes,
    call,
    names,
    put: (path, text) => save(join(tools, path), text),
    remove: (path) => rmSync(join(tools, path), { recursive: true }),
    async answers(name, text) {
      let last = '';
      await waitFor(async () => {
        last = await call(name).then(
          (called) => called.text,
          (error: Error) => error.message,
        );
        return last === text || null;
      }, TAKEN_UP).catch(() => {
        throw new Error(`${name} answers ${last}, not ${text}\n${notes.slice(-5).join('\n')}`);
      });
    },
    async lists(...wanted) {
      await waitFor(() => names().join() === wanted.join() || null, TAKEN_UP).catch(() => {
        throw new Error(`lists ${names().join()}, not ${wanted.join()}\n${notes.slice(-5).join('\n')}`);
      });
    },
  };
}
