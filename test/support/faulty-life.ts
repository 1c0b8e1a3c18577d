/**
 * A gateway with everything that starts programs and writes files, and what people do with it while the machine refuses
 * one thing or another. After every refusal the same thing has to work again, without a restart.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { expect } from 'vitest';
import { readPetitions, verifyAudit } from '../../src/index.ts';
import { runCli } from './cli.ts';
import { callTool, dockEnv, PY_HEAD, pyTool, save, sharedPython, tsTool } from './dock.ts';
import { type Fault, type FaultKind, faultsOf, type Injector, injectFaults, type Site } from './faults.ts';
import { type HttpGateway, startHttp } from './gateway.ts';
import { startRegistry } from './npm-registry.ts';
import { waitFor } from './processes.ts';
import { noPython } from './python.ts';
import { createRandom } from './random.ts';
import { call, replaceFile, toml } from './running-gateway.ts';
import { server } from './server.ts';
import { tempFolder, writeFiles } from './temp.ts';

export interface Life {
  readonly injector: Injector;
  readonly acts: Readonly<Record<string, Act>>;
  /** Does these once, so that every place that starts or writes is known. Returns them by act. */
  learn(names: readonly string[]): Promise<Case[]>;
  /** Does it while calls from there fail, in each of these ways, and again when they do not. Returns what is wrong. */
  suffer(one: Case, faults: readonly Fault[]): Promise<string[]>;
  /** The same with failures everywhere, as `chance` says. */
  sufferAnywhere(act: string, chance: () => Fault | null, kind: FaultKind): Promise<string[]>;
  close(): Promise<void>;
}

export interface Case {
  readonly act: string;
  readonly site: Site;
  readonly kind: FaultKind;
  /** Whether it is called only when the act seems over. */
  readonly isLate: boolean;
}

/** Throws if it did not work within so many milliseconds. */
type Act = (patience: number) => Promise<void>;

/** How long it takes until the cause of a failure is told, several times. An install takes its time on a busy machine. */
const IMPATIENT = 30_000;
/** How long after an act its last write may come. */
const LATE = 1_500;
/** What a restart and its pause take on a busy machine, several times. */
const PATIENT = 60_000;
const CAUSE =
  /EMFILE|ENFILE|EAGAIN|ENOMEM|ENOSPC|EIO|EROFS|too many files|no space left|read-only|could not be started|not enough memory/;
const NO_CAUSE = /failed unexpectedly|internal error|\n {4}at /i;
const OPERATOR = 'the-key-of-the-operator';

export async function startLife(options: { readonly packages?: boolean } = {}): Promise<Life> {
  const injector = await injectFaults();
  const cwd = tempFolder();
  const commands = tempFolder({ 'tools.toml': 'servers = []\n', key: 'a key that is only for tests' });
  const data = join(cwd, '.toolgate');
  let serial = 0;
  const registry = options.packages === true ? await startRegistry({ name: 'p', version: '1.0.0', bins: ['p'] }) : null;
  const registryEnv = registry?.env() ?? {};
  const config = (more: Parameters<typeof toml>[0] = []) =>
    toml(
      [
        { namespace: 's', command: server('basic'), calls_per_day: 10_000 },
        { namespace: 'danger', command: server('basic') },
        ...more,
      ],
      {
        active_toolsets: undefined,
        controls: ['equip'],
        selection: 'shared',
        security: { dangerous_tools: { danger: ['count'] } },
        audit: { enabled: true },
        toolsets: { all: { tools: ['*'] } },
      },
    );
  if (noPython === undefined) {
    mkdirSync(join(data, 'venvs'), { recursive: true });
    symlinkSync(await sharedPython(), join(data, 'venvs/_base'));
  }
  const env = { ...dockEnv(), ...registryEnv, TOOLGATE_OPERATOR_KEY: OPERATOR };
  const gateway: HttpGateway = await startHttp({ cwd, config: config(), env, args: ['--log-level', 'info'] });
  const { client } = await gateway.connect();
  await callControl(client, 'equip-toolset', { name: 'all' });

  /** Where the log was when calls began to fail; null while none do. */
  let failsFrom: number | null = null;
  const logged = () => gateway.stderr().slice(failsFrom ?? 0);

  /** Calls a tool until it answers so, or the log says why it cannot. The error has the last answer. */
  const until = async (name: string, text: string, patience: number, without = text) => {
    let last = '';
    const asked = async () => {
      last = (await callTool(gateway.url, name)).text;
      if (failsFrom !== null && CAUSE.test(last + logged())) throw new Error(last);
      return last.includes(text) && (without === text || !last.includes(without));
    };
    await waitFor(asked, patience).catch(() => {
      throw new Error(`${name} does not answer ${text}: ${last}`);
    });
    return last;
  };
  const cli = async (args: string[], more: Parameters<typeof runCli>[1] = {}) => {
    const { code, stderr } = await runCli(args, {
      cwd: commands,
      env: { SECRETS_KEY: 'a key that is only for tests' },
      ...more,
    });
    if (code !== 0) throw new Error(`toolgate ${args.join(' ')} exited with ${code}: ${stderr}`);
  };

  const acts: Record<string, Act> = {
    async 'a call'() {
      const { text, isError } = await callTool(gateway.url, 's_echo');
      if (isError) throw new Error(text);
    },
    async 'a changed server'(patience) {
      const name = `n${++serial}`;
      replaceFile(cwd, config([{ namespace: 'x', command: server('basic', '--name', name) }]));
      await until('x_whoami', `"${name}"`, patience);
    },
    async 'a server that died'(patience) {
      // By the answer that had it: the next call may be told that the server of an earlier act has just died.
      const { pid } = JSON.parse(await until('s_whoami', '"pid"', patience)) as { pid: number };
      process.kill(pid, 'SIGKILL');
      await until('s_whoami', '"pid"', patience, `"pid":${pid},`);
    },
    async 'a TypeScript file'(patience) {
      const name = `n${++serial}`;
      save(join(data, 'tools/ts/a.ts'), tsTool('a', `return '${name}';`));
      await until('ts_a', name, patience);
    },
    async 'a toolset'() {
      const name = `t${++serial}`;
      await callControl(client, 'build-toolset', { name, tools: [{ namespacedName: 's.echo' }] });
      await callControl(client, 'equip-toolset', { name });
      await callControl(client, 'equip-toolset', { name: 'all' });
      await callControl(client, 'delete-toolset', { name, confirm: true });
    },
    async 'an approval'(patience) {
      // By its argument, and given up if it fails: another call must not find it waiting.
      const name = `n${++serial}`;
      const givenUp = new AbortController();
      const calling = callTool(gateway.url, 'danger_count', { name }, givenUp.signal);
      const decide = (id: string) =>
        cli(['approvals', 'approve', id], { cwd, env: { TOOLGATE_OPERATOR_KEY: OPERATOR } });
      try {
        const asked = waitFor(async () => {
          if (failsFrom !== null && CAUSE.test(logged())) throw new Error(logged());
          return (await readPetitions(data)).find((one) => one.arguments.includes(`"${name}"`)) ?? null;
        }, patience);
        const first = await Promise.race([calling, asked]);
        if ('text' in first) throw new Error(first.text);
        await decide(first.id);
        const { text, isError } = await calling;
        if (isError) throw new Error(text);
      } catch (error) {
        givenUp.abort();
        await calling.catch(() => {});
        throw error;
      }
    },
    'a token': () => cli(['agents', 'add', `a${++serial}`]),
    'a secret': () => cli(['secrets', 'set', `S${++serial}`, '--stdin'], { input: 'x'.repeat(20) }),
    'a saved toolset': () => cli(['toolsets', 'create', `c${++serial}`, 's.echo'], { cwd }),
    'a new namespace': () => cli(['namespaces', 'create', `ns${++serial}`]),
    async 'a second gateway'() {
      const second = await startHttp({ cwd, env });
      const { text, isError } = await callTool(second.url, 's_echo');
      await second.stop();
      if (isError) throw new Error(text);
    },
  };
  if (noPython === undefined)
    acts['a Python file'] = async (patience) => {
      const name = `n${++serial}`;
      save(join(data, 'tools/py/a.py'), PY_HEAD + pyTool('a', `return '${name}'`));
      await until('py_a', name, patience);
    };
  if (registry !== null) {
    acts['a package of npx'] = async (patience) => {
      const name = `n${++serial}`;
      rmSync(join(registryEnv.HOME!, 'npm'), { recursive: true, force: true });
      rmSync(join(registryEnv.HOME!, '.cache'), { recursive: true, force: true });
      replaceFile(cwd, config([{ namespace: 'p', command: `npx -y p --instructions ${name}` }]));
      await until('p_whoami', name, patience);
    };
    acts['packages of a folder'] = async (patience) => {
      const name = `n${++serial}`;
      writeFiles(join(data, 'tools/dep'), {
        'package.json': JSON.stringify({ name, private: true, dependencies: { p: '1.0.0' } }),
      });
      save(join(data, 'tools/dep/a.ts'), tsTool('a', `return '${name}';`));
      await until('dep_a', name, patience);
    };
  }

  /** Files that could not be removed. Toolgate sweeps them an hour later. */
  const left = new Set<string>();

  /** What is wrong with the files, when nothing is being written. */
  async function damage(): Promise<string[]> {
    const wrong: string[] = [];
    for (const folder of [data, join(commands, '.toolgate')])
      for (const path of existsSync(folder) ? filesIn(folder) : []) {
        if (/\/(venvs|tools|node_modules)\/|\/tsconfig\.json$/.test(path)) continue;
        if (/\.(tmp|lock)$/.test(path) && !left.has(path)) wrong.push(`left behind: ${path}`);
        if (!path.endsWith('.json')) continue;
        try {
          JSON.parse(readFileSync(path, 'utf8'));
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOENT') wrong.push(`half-written: ${path}`);
        }
      }
    return wrong;
  }

  /** Does it while some calls fail. Returns what is wrong. */
  async function fail(
    name: string,
    fault: (site: Site, kind: FaultKind) => Fault | null,
    late: number,
  ): Promise<string[]> {
    const wrong: string[] = [];
    let isRemovalRefused = false;
    failsFrom = gateway.stderr().length;
    const hits = injector.refuse((site, kind) => {
      const given = fault(site, kind);
      isRemovalRefused ||= given !== null && /^(unlink|rm)/.test(site);
      return given;
    });
    const outcome = await acts[name]!(IMPATIENT).catch((error: Error) => error);
    await waitFor(() => hits() > 0, late).catch(() => {});
    injector.allow();
    const log = logged();
    failsFrom = null;
    if (outcome instanceof Error && hits() > 0) {
      if (!CAUSE.test(outcome.message + log)) wrong.push(`without a cause: ${outcome.message}`);
      if (NO_CAUSE.test(outcome.message)) wrong.push(`not for people: ${outcome.message}`);
    }
    const health = await fetch(`${gateway.origin}/health`).then(({ status }) => status, String);
    if (health !== 200) wrong.push(`health is ${health}`);
    if (isRemovalRefused)
      for (const path of [data, commands].flatMap(filesIn)) if (path.endsWith('.tmp')) left.add(path);
    return wrong;
  }

  /** Does it when no call fails any more. Returns what is wrong. */
  async function recover(name: string): Promise<string[]> {
    const wrong: string[] = [];
    await acts[name]!(PATIENT).catch((error: Error) => wrong.push(`does not work again: ${error.message}`));
    const isSound = async () => (await damage()).length === 0;
    // A lock that could not be removed is taken over ten seconds later.
    await waitFor(isSound, 20_000).catch(async () => wrong.push(...(await damage())));
    wrong.push(...injector.uncaught.splice(0).map((error) => `uncaught: ${(error as Error)?.stack ?? error}`));
    return wrong;
  }

  return {
    injector,
    acts,
    async learn(names) {
      const cases: Case[] = [];
      for (const act of names) {
        const run = acts[act]!;
        // The first time differs from all others.
        await run(PATIENT);
        const seen = new Map<Site, FaultKind>();
        injector.refuse((site, kind) => {
          seen.set(site, kind);
          return null;
        });
        await run(PATIENT);
        const early = new Set(seen.keys());
        // What is written a second later belongs to it, too.
        await new Promise((resolve) => setTimeout(resolve, 1_200));
        injector.allow();
        // Programs are started from one place for all of them. A place that writes is tried once.
        const isNew = (site: Site, kind: FaultKind) => kind === 'spawn' || !cases.some((one) => one.site === site);
        for (const [site, kind] of seen)
          if (isNew(site, kind)) cases.push({ act, site, kind, isLate: !early.has(site) });
      }
      return cases;
    },
    async suffer({ act, site, isLate }, faults) {
      const wrong: string[] = [];
      for (const fault of faults) {
        const found = await fail(act, (at) => (at === site ? fault : null), isLate ? LATE : 0);
        wrong.push(...found.map((one) => `${fault}: ${one}`));
      }
      wrong.push(...(await recover(act)));
      return wrong.map((one) => `${act}, ${site}: ${one}`);
    },
    async sufferAnywhere(act, chance, wanted) {
      const wrong = await fail(act, (_, kind) => (kind === wanted ? chance() : null), 0);
      return [...wrong, ...(await recover(act))].map((one) => `${act}, ${wanted} at random: ${one}`);
    },
    async close() {
      injector.remove();
      await client.close();
      await gateway.stop();
      const { problems } = await verifyAudit(join(data, 'logs'));
      if (problems.length > 0) throw new Error(`the audit has problems: ${JSON.stringify(problems)}`);
    },
  };
}

/** Refuses every start and write of these acts, in every way; except those writes of `covered`, which another file has. */
export async function sufferSystem(isWanted: (act: string) => boolean, covered: readonly string[] = []): Promise<void> {
  const life = await startLife({ packages: true });
  const known = new Set((await life.learn(covered)).filter(({ kind }) => kind === 'write').map(({ site }) => site));
  const all = await life.learn(Object.keys(life.acts).filter(isWanted));
  const cases = all.filter(({ site }) => !known.has(site));
  const wrong: string[] = [];
  for (const one of cases) {
    const start = performance.now();
    const found = await life.suffer(one, faultsOf(one.kind));
    wrong.push(...found);
    // What takes long is seen while it goes on.
    console.log(
      `${((performance.now() - start) / 1_000).toFixed(1)} s, ${found.length} wrong: ${one.act}, ${one.site}`,
    );
  }
  console.log(`${cases.length} places`);
  await life.close();
  expect(wrong).toEqual([]);
}

/** These start a gateway of their own, and end it. */
const ENDING = ['a second gateway', 'a saved toolset'];

/** Refuses starts and writes at random. */
export async function sufferRandomly(rounds: number): Promise<void> {
  const random = createRandom();
  console.log(`seed ${random.seed}`);
  const life = await startLife();
  const wrong: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const act = random.pick(Object.keys(life.acts));
    const kind = random.pick(['spawn', 'write'] as const);
    const fault = random.pick(faultsOf(kind));
    // A gateway that ends while nothing can be written leaves its last lines without a seal, and `audit verify` says so.
    if (ENDING.includes(act) && kind === 'write') continue;
    wrong.push(...(await life.sufferAnywhere(act, () => (random.chance(0.3) ? fault : null), kind)));
  }
  await life.close();
  expect(wrong).toEqual([]);
}

async function callControl(client: Client, name: string, args: Record<string, unknown>): Promise<void> {
  const { text, isError } = await call(client, name, args);
  if (isError) throw new Error(text);
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}
