/**
 * A random walk over toolsets and configuration edits, with several clients of both eras. After every step each client
 * lists what the toolsets say now, cannot call anything else, and was notified once if its list changed.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { readExposition } from '../support/exposition.ts';
import { startHttp } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { createRandom, type Random } from '../support/random.ts';
import { replaceFile } from '../support/running-gateway.ts';
import { tempFolder } from '../support/temp.ts';
import { BUILT_IN, control, refs, THREE } from '../support/toolsets.ts';
import { isSoak, isWide } from '../support/wide.ts';

const TOOLS: Readonly<Record<string, readonly string[]>> = {
  git: ['status', 'commit', 'log'],
  docker: ['ps', 'images'],
  linear: ['create_issue'],
};
const EXPOSED = Object.entries(TOOLS).flatMap(([server, tools]) => tools.map((tool) => `${server}_${tool}`));
/** References in all forms. None of them depends on how Toolgate matches patterns. */
const MEANT: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    Object.entries(TOOLS).flatMap(([server, tools]) => [
      ...tools.map((tool) => [`${server}.${tool}`, [`${server}_${tool}`]]),
      [`${server}.*`, tools.map((tool) => `${server}_${tool}`)],
      [`${server}_*`, tools.map((tool) => `${server}_${tool}`)],
    ]),
  ),
  '*': EXPOSED,
};
const REFERENCES = Object.keys(MEANT);
const NAMES = ['dev', 'ops', 'git', 'all', 'mine'];

/** A toolset as the walk wrote it. Every writing has another description, which equip-toolset shows. */
interface Written {
  readonly tools: readonly string[];
  readonly description: string;
}

/** What a client has: the toolset of a user, or an implicit one, by its name. */
type Choice = { readonly name: string; readonly isImplicit: boolean } | null;

/** What should be the case, worked out from the steps alone. */
interface World {
  readonly configured: Map<string, Written>;
  readonly saved: Map<string, Written>;
  /** Files that are not JSON now. */
  readonly damaged: Set<string>;
  servers: readonly string[];
  /** The configuration's `active_toolsets`, of which `linear_*` is the only one. */
  hasBase: boolean;
}

interface Walker {
  readonly who: string;
  readonly connection: Pick<Awaited<ReturnType<typeof connectModernHttp>>, 'changes'> & { client: Listing };
  /** Clients of one owner share a choice. Null if the request names the toolset. */
  readonly owner: { choice: Choice } | null;
  readonly address: string | null;
  /** Its last list, as it arrived. */
  list: string;
  expected: number;
}

interface Listing {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string; readonly description?: string }[] }>;
  callTool(params: { name: string; arguments?: Record<string, unknown> }): Promise<unknown>;
}

const find = ({ configured, saved }: World, name: string) => configured.get(name) ?? saved.get(name) ?? null;

function isImplicit({ servers }: World, name: string): boolean {
  return name === 'all' || servers.includes(name);
}

/** The tools that a toolset of this name has for a client that got it as `isImplicit` says. */
function toolsOf(world: World, name: string, implicit: boolean): readonly string[] {
  const written = find(world, name);
  const meant =
    written === null
      ? implicit
        ? (MEANT[name === 'all' ? '*' : `${name}.*`] ?? [])
        : []
      : written.tools.flatMap((one) => MEANT[one]!);
  return EXPOSED.filter((tool) => meant.includes(tool) && world.servers.some((key) => tool.startsWith(`${key}_`)));
}

function expectedTools(world: World, { owner, address }: Walker): readonly string[] {
  if (address !== null) return toolsOf(world, address, isImplicit(world, address));
  const chosen = owner!.choice === null ? [] : toolsOf(world, owner!.choice.name, owner!.choice.isImplicit);
  return EXPOSED.filter((tool) => chosen.includes(tool) || (world.hasBase && tool.startsWith('linear_')));
}

function printConfig({ configured, servers, hasBase }: World): string {
  const toolsets = [...configured].map(
    ([name, { tools, description }]) =>
      `[toolsets.${name}]\ndescription = "${description}"\ntools = ${JSON.stringify(tools)}\n`,
  );
  const entries = servers.map(
    (key) => `[[servers]]\nnamespace = "${key}"\ncommand = ${JSON.stringify(THREE[key as keyof typeof THREE])}\n`,
  );
  return `controls = ["equip"]\nactive_toolsets = ${hasBase ? '["linear_*"]' : '[]'}\n${toolsets.join('')}${entries.join('')}`;
}

/**
 * A toolset without tools in the catalog is in no list, so nobody can see when its removal from the configuration has
 * taken effect. Until then its name is taken.
 */
async function controlWhenFree(client: Listing, name: string, args: object): Promise<void> {
  await waitFor(() =>
    control(client, name, args).then(
      () => true,
      (error: Error) => {
        if (!error.message.includes('is part of the configuration')) throw error;
        return false;
      },
    ),
  );
}

/** A wide run walks ten times as far, from several places. `SEED=n` sets the first one. */
const STEPS = isSoak ? 300 : isWide ? 50 : 15;
const FIRST = createRandom().seed;
const SEEDS = Array.from({ length: isSoak || isWide ? 3 : 1 }, (_, i) => FIRST + i);

it.each(SEEDS)(
  'after every step every client has what its toolset says, nothing else, and was told once (seed %i)',
  async (seed) => {
    const random = createRandom(seed);
    let serial = 0;
    const fresh = (count: number): Written => ({
      tools: random.shuffle(REFERENCES).slice(0, count),
      description: `written-${++serial}-`,
    });
    const world: World = {
      configured: new Map([
        ['dev', fresh(2)],
        ['ops', fresh(2)],
      ]),
      saved: new Map(),
      damaged: new Set(),
      servers: Object.keys(TOOLS),
      hasBase: false,
    };
    const env = { HOME: tempFolder() };
    const gateway = await startHttp({ config: printConfig(world), env });
    const { cwd, origin } = gateway;
    const fileOf = (name: string) => join('.toolgate/toolsets', `${name}.json`);
    const modern = { choice: null };
    const join1 = async (
      who: string,
      connection: Walker['connection'],
      owner: Walker['owner'],
      address: string | null,
    ) => ({ who, connection, owner, address, list: '', expected: 0 }) satisfies Walker;
    const walkers: Walker[] = [
      await join1('session 1', await gateway.connect(), { choice: null }, null),
      await join1('session 2', await gateway.connect(), { choice: null }, null),
      await join1('modern 1', await gateway.connectModern(), modern, null),
      await join1('modern 2', await gateway.connectModern(), modern, null),
      await join1('session at dev', await gateway.connect({ path: '/mcp/t/dev' }), null, 'dev'),
      await join1('modern at dev', await connectModernHttp(`${origin}/mcp/t/dev`), null, 'dev'),
      await join1('session with ops', await gateway.connect({ headers: { 'x-toolset': 'ops' } }), null, 'ops'),
      await join1('modern at git', await connectModernHttp(`${origin}/mcp?toolset=git`), null, 'git'),
    ];
    const choosers = walkers.filter(({ owner }) => owner !== null);
    const owners = [...new Set(choosers.map(({ owner }) => owner!))];

    /** The walk changed toolsets: an implicit one that a user's toolset hides now is that one. */
    const settleChoices = () => {
      for (const owner of owners)
        if (owner.choice !== null && find(world, owner.choice.name) !== null)
          owner.choice = { name: owner.choice.name, isImplicit: false };
    };

    /** Saved toolsets that a model or a command can change. */
    const changeable = () =>
      [...world.saved.keys()].filter((name) => !world.configured.has(name) && !world.damaged.has(name));
    const usable = () => REFERENCES.filter((one) => one === '*' || world.servers.some((key) => one.startsWith(key)));
    const free = () => NAMES.filter((name) => find(world, name) === null && !world.damaged.has(name));
    const byModel = (random: Random) => random.pick(choosers);
    const writeConfig = () => replaceFile(cwd, printConfig(world));
    const reloads = async () =>
      readExposition(await (await fetch(`${origin}/metrics`)).text())
        .get('toolgate_config_reloads_total')!
        .samples.find(({ labels }) => labels.outcome === 'ok')!.value;

    type Step = () => Promise<unknown> | unknown;
    const moves: Record<string, () => Step | null> = {
      'edit a toolset of the configuration': () => () => {
        world.configured.set(random.pick(['dev', 'ops', 'mine']), fresh(1 + random.number(3)));
        writeConfig();
      },
      'remove a toolset of the configuration': () => () => {
        world.configured.delete(random.pick(['dev', 'ops', 'mine']));
        writeConfig();
      },
      'add or remove a server': () => () => {
        world.servers = world.servers.includes('docker') ? ['git', 'linear'] : ['git', 'docker', 'linear'];
        writeConfig();
      },
      'change what is active from the start': () => async () => {
        const before = await reloads();
        world.hasBase = !world.hasBase;
        writeConfig();
        // Maybe no list shows it, and then it would be counted with the next step.
        await waitFor(async () => (await reloads()) > before);
      },
      'write a file by hand': () => () => {
        const name = random.pick(NAMES);
        const written = fresh(1 + random.number(3));
        world.saved.set(name, written);
        world.damaged.delete(name);
        const { tools, description } = written;
        mkdirSync(join(cwd, '.toolgate/toolsets'), { recursive: true });
        replaceFile(cwd, JSON.stringify({ description, tools: refs(...tools) }), fileOf(name));
      },
      'delete a file by hand': () => {
        const [name] = random.shuffle([...world.saved.keys()]);
        if (name === undefined) return null;
        return () => {
          world.saved.delete(name);
          world.damaged.delete(name);
          rmSync(join(cwd, fileOf(name)));
        };
      },
      'damage a file': () => {
        const [name] = random.shuffle(changeable());
        if (name === undefined) return null;
        return () => {
          world.damaged.add(name);
          replaceFile(cwd, '{"tools": [', fileOf(name));
        };
      },
      'build a toolset': () => {
        const [name] = random.shuffle(free());
        if (name === undefined) return null;
        const { client } = byModel(random).connection;
        return async () => {
          const tools = random.shuffle(usable()).slice(0, 1 + random.number(3));
          const written = { ...fresh(0), tools };
          world.saved.set(name, written);
          await controlWhenFree(client, 'build-toolset', {
            name,
            description: written.description,
            tools: refs(...tools),
          });
        };
      },
      'build and equip a toolset': () => {
        const [name] = random.shuffle(free());
        if (name === undefined) return null;
        const { connection, owner } = byModel(random);
        return async () => {
          const tools = random.shuffle(usable()).slice(0, 2);
          const written = { ...fresh(0), tools };
          world.saved.set(name, written);
          owner!.choice = { name, isImplicit: false };
          const { description } = written;
          await controlWhenFree(connection.client, 'build-toolset', {
            name,
            description,
            tools: refs(...tools),
            autoEquip: true,
          });
        };
      },
      'edit and rename a toolset': () => {
        const [name] = random.shuffle(changeable());
        if (name === undefined) return null;
        const { client } = byModel(random).connection;
        return async () => {
          const before = world.saved.get(name)!;
          const add = random
            .shuffle(usable())
            .filter((one) => !before.tools.includes(one))
            .slice(0, 1);
          const remove = random.chance(0.5) ? before.tools.slice(0, 1) : [];
          const { description } = fresh(0);
          const newName = random.chance(0.4) ? random.shuffle(free())[0] : undefined;
          world.saved.delete(name);
          const tools = [...before.tools.filter((one) => !remove.includes(one)), ...add];
          world.saved.set(newName ?? name, { tools, description });
          if (newName !== undefined)
            for (const owner of owners)
              if (owner.choice?.name === name) owner.choice = { name: newName, isImplicit: false };
          await controlWhenFree(client, 'edit-toolset', {
            name,
            description,
            ...(add.length > 0 && { add: refs(...add) }),
            ...(remove.length > 0 && { remove: refs(...remove) }),
            ...(newName !== undefined && { newName }),
          });
        };
      },
      'delete a toolset': () => {
        const [name] = random.shuffle(changeable());
        if (name === undefined) return null;
        const { connection, owner } = byModel(random);
        return async () => {
          world.saved.delete(name);
          if (owner!.choice?.name === name) owner!.choice = null;
          await control(connection.client, 'delete-toolset', { name, confirm: true });
        };
      },
      'edit or delete a toolset with a command': () => {
        const [name] = random.shuffle(changeable());
        if (name === undefined) return null;
        return async () => {
          const { description } = fresh(0);
          const isDeleted = random.chance(0.5);
          if (isDeleted) world.saved.delete(name);
          else world.saved.set(name, { ...world.saved.get(name)!, description });
          const args = isDeleted ? ['delete', name, '--yes'] : ['edit', name, '--description', description];
          expect(await runCli(['toolsets', ...args], { cwd, env })).toMatchObject({ code: 0 });
        };
      },
      equip: () => {
        const names = [...new Set([...world.configured.keys(), ...world.saved.keys(), 'all', ...world.servers])];
        const name = random.pick(names.filter((one) => world.configured.has(one) || !world.damaged.has(one)));
        const { connection, owner } = byModel(random);
        return async () => {
          owner!.choice = { name, isImplicit: find(world, name) === null };
          await control(connection.client, 'equip-toolset', { name });
        };
      },
      unequip: () => {
        const { connection, owner } = byModel(random);
        return async () => {
          owner!.choice = null;
          await control(connection.client, 'unequip-toolset');
        };
      },
    };

    /** Lists. A toolset that is gone has no address for clients without a session. */
    const list = async ({ connection, address }: Walker): Promise<Awaited<ReturnType<Listing['listTools']>>> => {
      try {
        return await connection.client.listTools();
      } catch (error) {
        if (address === null || find(world, address) !== null || isImplicit(world, address)) throw error;
        expect(String(error)).toMatch(/404|There is no toolset/);
        return { tools: [] };
      }
    };

    /** Whether equip-toolset names exactly the toolsets that there are, in order, as they were written last. */
    const isDescribed = (description: string) => {
      const saved = [...world.saved.keys()].filter((name) => !world.configured.has(name)).sort();
      const made = [...world.configured.keys(), ...saved];
      const unlessMade = (name: string, otherwise: string) => (made.includes(name) ? otherwise : name);
      const served = (key: string) => TOOLS[key]!.length;
      const shown = [
        ...made.map((name) => [name, toolsOf(world, name, false).length, find(world, name)!.description]),
        [unlessMade('all', '*'), world.servers.map(served).reduce((a, b) => a + b), ''],
        ...world.servers.map((key) => [unlessMade(key, `${key}.*`), served(key), '']),
      ].filter(([, count]) => count !== 0);
      const lines = description.matchAll(/^(\S+) \((\d+) tools?, [^)]*\)(?:: (written-\d+-))?/gm);
      const found = [...lines].map(([, name, count, written = '']) => [name, Number(count), written]);
      return JSON.stringify(found) === JSON.stringify(shown);
    };

    const isThere = async (walker: Walker) => {
      // A toolset that was just added may not be there yet.
      const listed = await list(walker).catch(() => null);
      if (listed === null) return null;
      const { tools } = listed;
      const names = tools.map(({ name }) => name).filter((name) => !BUILT_IN.includes(name));
      // The order is that in which the client saw them first.
      if (JSON.stringify(names.sort()) !== JSON.stringify([...expectedTools(world, walker)].sort())) return null;
      if (walker.address !== null) return tools.length === names.length ? tools : null;
      return isDescribed(tools.find(({ name }) => name === 'equip-toolset')!.description!) ? tools : null;
    };

    const check = async (what: string) => {
      for (const walker of walkers) {
        const { who, connection } = walker;
        const tools = await waitFor(() => isThere(walker)).catch(async () => {
          const { tools: now } = await list(walker);
          const names = now.map(({ name }) => name).filter((name) => !BUILT_IN.includes(name));
          return expect.fail(
            `${what}: ${who} has ${names} instead of ${expectedTools(world, walker)}; ${now.find(({ name }) => name === 'equip-toolset')?.description}`,
          );
        });
        const now = JSON.stringify(tools);
        if (walker.list !== '' && now !== walker.list) walker.expected++;
        walker.list = now;
        const [open] = random.shuffle(expectedTools(world, walker));
        const closed = random
          .shuffle(EXPOSED.filter((name) => !expectedTools(world, walker).includes(name)))
          .slice(0, 2);
        const call = (name: string) =>
          connection.client.callTool({ name, arguments: {} }).then(
            (result) => (result as { isError?: boolean }).isError !== true,
            () => false,
          );
        if (open !== undefined) expect(await call(open), `${what}: ${who} calls ${open}`).toBe(true);
        for (const name of closed) expect(await call(name), `${what}: ${who} calls ${name}`).toBe(false);
      }
      for (const walker of walkers) {
        const { who, connection, expected } = walker;
        await waitFor(() => connection.changes('tools') >= expected).catch(() => {});
        // What changed while the lists of others were compared counts as well.
        const now = JSON.stringify((await list(walker)).tools);
        const changes = expected + (now === walker.list ? 0 : 1);
        walker.list = now;
        const told = connection.changes('tools');
        expect(told, `${what}: notifications of ${who}`).toBe(changes);
        walker.expected = told;
      }
    };

    await check('start');
    for (let i = 1; i <= STEPS; i++) {
      const [name, move] = random.pick(Object.entries(moves));
      const step = move();
      if (step === null) continue;
      await step();
      settleChoices();
      await check(`seed ${random.seed}, step ${i}, ${name}`);
    }
    // What came late for the last step would come before this.
    world.configured.set('dev', fresh(1));
    writeConfig();
    await check(`seed ${random.seed}, the end`);
  },
  600_000,
);
