/** Runs a published client once against the demo, and says what it did. */
import { spawn } from 'node:child_process';
import { within } from '../../support/child.ts';
import { atEnd } from '../../support/cleanup.ts';
import { writeFiles } from '../../support/temp.ts';
import type { Turn } from './model.ts';
import { openPlace, type Place, type Transport } from './place.ts';
import type { Published } from './published.ts';
import { hasRemembered } from './remember.ts';
import type { Said } from './wire.ts';

/** A client that starts its own servers on a busy machine needs long for its first request. */
const MOST_MS = 150_000;

/** How much of a text reaches the model: everything, nothing, or so many characters. */
export type Passed = 'all' | 'none' | number;

export interface Measurement {
  /** The name that the client gives itself. */
  readonly name: string;
  readonly protocol: string;
  /** When it asks for the tools. */
  readonly lists: 'once' | 'when told' | 'before each request' | 'when the program says so';
  /** The request to the model that had the activated tools, counted from 1; null if none had, or if there is no model. */
  readonly shownIn: number | null;
  /** The request to the model that was answered with the call of the memory tool. */
  readonly calledIn: number | null;
  /** What was called: the memory tool itself, or `toolman_call`; null if the memory server was not reached. */
  readonly through: 'the tool' | 'toolman_call' | null;
  readonly description: Passed;
  readonly instructions: Passed;
  /** Whether it could list the resources of the demo; null if it does not list them by itself. */
  readonly resources: boolean | null;
}

/** What a program of ours prints. */
export type Report = Record<string, unknown> | undefined;

export interface Run {
  readonly measured: Measurement;
  readonly turns: readonly Turn[];
  readonly said: readonly Said[];
  readonly report: Report;
  readonly output: string;
  readonly refused: ReadonlySet<string>;
}

export async function measure(client: Published, transport: Transport, running?: string): Promise<Run> {
  const place = await openPlace(transport, running);
  const { argv, env, files, before = [] } = client.start(place);
  writeFiles(place.home, files ?? {});
  let output = '';
  for (const command of [...before, argv]) output = await run(place, command, { ...place.env, ...env });
  const said = place.said();
  const { turns, refused } = place.model;
  const line = /^REPORT (.*)$/m.exec(output)?.[1];
  const report = line === undefined ? undefined : (JSON.parse(line) as Report);
  return { measured: measurementOf(said, turns, report), turns, said, report, output, refused };
}

export async function run(
  { work }: Place,
  [command, ...args]: readonly string[],
  env: Record<string, string>,
): Promise<string> {
  // A process group of its own: some clients leave helpers behind.
  const child = spawn(command!, args, { cwd: work, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
    });
  const kill = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // It has ended, and so have its helpers.
    }
  };
  atEnd(kill);
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code));
  });
  const code = await within(MOST_MS, exited);
  kill();
  if (code !== 0)
    throw new Error(`${command} ${code === undefined ? 'did not end' : `ended with ${code}`}:\n${output.slice(-4000)}`);
  return output;
}

function measurementOf(said: readonly Said[], turns: readonly Turn[], report: Report): Measurement {
  const called = turns.findIndex(hasRemembered);
  const shown = turns.findIndex(
    ({ tools, text }) => tools.some(({ name }) => isCreate(name)) || /\bmcp__\w+__memory_create_entities\b/.test(text),
  );
  return {
    ...introduction(said),
    lists: listsOf(said, turns),
    shownIn: shown < 0 ? null : shown + 1,
    // The answer to the call is in the next request, and this index counts from 0.
    calledIn: called < 0 ? null : called,
    through: throughOf(said),
    ...passedOf(said, turns[0], report),
    resources:
      report?.resources === undefined
        ? hasAsked(said, 'resources/list')
          ? true
          : null
        : typeof report.resources === 'number',
  };
}

/** The name of the memory tool as a client shows it: with a prefix of its own. Claude Code names tools of its search in a message. */
function isCreate(name: string): boolean {
  return /^(?:mcp_+)?(?:toolgate_+)?memory_create_entities$/.test(name);
}

/** The name of the client and the revision, from its first message in either era. */
function introduction(said: readonly Said[]): { name: string; protocol: string } {
  const meta = said.map(({ message }) => message.params?._meta).find((one) => one?.[CLIENT_INFO] !== undefined);
  // The last one: some try a connection first, under another name.
  const initialize = said.findLast(({ message }) => message.method === 'initialize');
  const opened = said.find(({ message }) => message.result?.protocolVersion !== undefined);
  const name = initialize?.message.params?.clientInfo?.name;
  const protocol = opened?.message.result?.protocolVersion;
  if (name !== undefined && protocol !== undefined) return { name, protocol };
  return { name: meta?.[CLIENT_INFO]?.name ?? '', protocol: meta?.['io.modelcontextprotocol/protocolVersion'] ?? '' };
}

const CLIENT_INFO = 'io.modelcontextprotocol/clientInfo';

function listsOf(said: readonly Said[], turns: readonly Turn[]): Measurement['lists'] {
  if (turns.length === 0) return 'when the program says so';
  const listed = said.filter(({ message }) => message.method === 'tools/list');
  if (turns.length > 2 && listed.length >= turns.length) return 'before each request';
  const activated = calls(said).find(({ message }) => message.params?.name === 'toolman_activate');
  return activated !== undefined && listed.some(({ at }) => at > activated.at) ? 'when told' : 'once';
}

/** Which of the calls reached the memory server, from what the gateway was asked and what it answered. */
function throughOf(said: readonly Said[]): Measurement['through'] {
  const reached = calls(said).find(({ message, at }) => {
    const isMemory =
      message.params?.name === 'memory_create_entities' || message.params?.arguments?.name === 'memory_create_entities';
    const answer = said.find((one) => one.by === 'server' && one.at >= at && one.message.id === message.id);
    return isMemory && answer?.message.result !== undefined && answer.message.result.isError !== true;
  });
  if (reached === undefined) return null;
  return reached.message.params?.name === 'toolman_call' ? 'toolman_call' : 'the tool';
}

function passedOf(
  said: readonly Said[],
  first: Turn | undefined,
  report: Report,
): Pick<Measurement, 'description' | 'instructions'> {
  if (first === undefined) {
    // A program is given everything; whether there is a way to read the instructions depends on the library.
    return {
      description: 'all',
      instructions: report?.instructions === undefined || report.instructions === null ? 'none' : 'all',
    };
  }
  const descriptions = first.tools.map(({ description }) => description).join('\n');
  const measured = { description: lengthIn(descriptions, 'd'), instructions: lengthIn(first.text, 'i') };
  if (measured.description !== 'none') return measured;
  // Without the ruler: Toolgate's own texts, which every client passes on whole or not at all.
  const results = said.map(({ message }) => message.result).filter((result) => result !== undefined);
  const instructions = results.find((result) => result.instructions !== undefined)?.instructions as string | undefined;
  const tools = results.find((result) => result.tools !== undefined)?.tools as { name: string; description: string }[];
  const description = tools.find(({ name }) => name === 'toolman_activate')?.description ?? '';
  return {
    description: descriptions.includes(description) ? 'all' : 'none',
    instructions: instructions !== undefined && first.text.includes(instructions.trim()) ? 'all' : 'none',
  };
}

/** How much of the ruler is in a text: see ruler.mjs. */
function lengthIn(text: string, mark: 'd' | 'i'): Passed {
  const last = [...text.matchAll(new RegExp(`\\b${mark}(\\d{6})\\b`, 'g'))].at(-1);
  if (last === undefined) return 'none';
  const end = Number(last[1]) + 8;
  return end >= RULER_LENGTH ? 'all' : end;
}

const RULER_LENGTH = 20_000;

function calls(said: readonly Said[]): Said[] {
  return said.filter(({ message }) => message.method === 'tools/call');
}

function hasAsked(said: readonly Said[], method: string): boolean {
  return said.some(({ message }) => message.method === method);
}
