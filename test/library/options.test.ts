/** What can be known when a server is created is said then: misspelt options, wrong toolsets, names that do not exist. */
import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import {
  createMcpServer,
  createPermissionBasedMcpServer,
  defineTool,
  mountToolsets,
  ToolingError,
} from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { connect, ERAS, startPermitted, withId } from './support.ts';

const tool = { name: 'find', description: 'Finds', inputSchema: {}, handler: () => 'found' };
const set = (...tools: object[]) => ({ name: 'N', description: 'D', tools });
const catalog = { search: set(tool), admin: set(tool) };

const create = (more: object) => createMcpServer({ catalog, ...more } as never);
const permit = (more: object) =>
  createPermissionBasedMcpServer({ catalog, permissions: { source: 'headers' }, ...more } as never);

async function refusal(creating: Promise<unknown>): Promise<ToolingError> {
  const error = await creating.then(
    () => new Error('it was created'),
    (failed: unknown) => failed,
  );
  expect(error).toBeInstanceOf(ToolingError);
  return error as ToolingError;
}

describe('an option that does not exist', () => {
  it.each([
    [{ authentcate: () => undefined }, '"authentcate". Did you mean "authenticate"?'],
    [{ moduleLoader: {} }, '"moduleLoader". Did you mean "moduleLoaders"?'],
    [{ exposurPolicy: {} }, '"exposurPolicy". Did you mean "exposurePolicy"?'],
    [{ exposurePolicy: { allowList: ['search'] } }, '"exposurePolicy.allowList". Did you mean "allowlist"'],
    [{ http: { prot: 1 } }, '"http.prot". Did you mean "port"?'],
    [{ startup: { toolset: ['search'] } }, '"startup.toolset". Did you mean "toolsets"?'],
    [{ clients: { ttl: 1 } }, '"clients.ttl". Did you mean "ttlMs"?'],
    [{ serverInfo: { nam: 'x', version: '1' } }, '"serverInfo.nam". Did you mean "name"?'],
    [{ sessionContext: { queryParam: { allowedKey: [] } } }, '"sessionContext.queryParam.allowedKey". Did you mean'],
    [{ catalog: { search: { ...set(tool), tols: [] } } }, '"catalog.search.tols". Did you mean "tools"?'],
    [{ http: { customEndpoints: [{ method: 'GET', path: '/x', public: true, handler() {} }] } }, '"isPublic"'],
    [{ permissions: { source: 'headers' } }, 'Use createPermissionBasedMcpServer for permissions.'],
    [{ zzz: 1 }, 'has no option "zzz". There are catalog, moduleLoaders,'],
    [{ http: 3000 }, '"http" must be an object.'],
  ])('is refused: %j', async (more, message) => {
    const { reason, message: said } = await refusal(create(more));
    expect(reason).toBe('E_VALIDATION');
    expect(said).toContain(message);
  });

  it('is refused where permissions decide', async () => {
    expect((await refusal(permit({ authentcate: () => undefined }))).message).toContain('"authenticate"');
    const permissions = { source: 'config', staticMap: {}, defaultPermission: [] };
    expect((await refusal(permit({ permissions }))).message).toContain('"permissions.defaultPermission"');
  });

  it('is refused by start, mount and mountToolsets', async () => {
    const server = await create({});
    atEnd(() => server.close());
    expect((await refusal(server.start({ transprt: 'stdio' } as never))).message).toContain('"transport"');
    expect(() => server.mount({} as never, { clientid: 'x' } as never)).toThrow('Did you mean "clientId"');
    expect((await refusal(mountToolsets({} as never, { catalog, http: {} } as never))).message).toContain('"http"');
  });

  it('is refused in a tool, unless another library has it', async () => {
    const { handler: execute, ...described } = tool;
    const withTool = (more: object) => create({ catalog: { a: set({ ...tool, ...more }) } });
    expect((await refusal(withTool({ timeoutMS: 5 }))).message).toContain(
      'The toolset "a": its tool "find": has an unknown member "timeoutMS". Did you mean "timeoutMs"?',
    );
    expect((await refusal(withTool({ schema: {} }))).message).toContain('unknown member "schema"');
    expect((await refusal(withTool({ needsApproval: true }))).message).toContain(
      '`needsApproval`, which is not applied',
    );
    const others = { id: 'find', parameters: z.object({}), toModelOutput: () => 1, needsApproval: false, execute };
    const server = await create({ catalog: { a: set({ ...described, inputSchema: undefined, ...others }) } });
    await server.close();
  });

  it('is refused in what authenticate returns, if it was probably meant as one of ours', async () => {
    const { url } = await startPermitted({
      catalog: { search: set(tool) } as never,
      permissions: { source: 'config', staticMap: { ann: ['search'] } },
      authenticate: ({ headers }) => ({ clientId: 'ann', [String(headers['x-key'])]: 1 }),
      logger: false,
    });
    const post = async (key: string) => (await fetch(url, { method: 'POST', headers: { 'x-key': key } })).status;
    expect(await post('expire')).toBe(401);
    expect(await post('tool_sets')).toBe(401);
    expect(await post('email')).not.toBe(401);
  });
});

describe('what is wrong is said when the server is created', () => {
  it('without options', async () => {
    expect((await refusal(createMcpServer(undefined as never))).message).toContain('createMcpServer needs options');
    expect((await refusal(createPermissionBasedMcpServer(undefined as never))).message).toContain('needs options');
    expect((await refusal(create({ catalog: undefined }))).message).toContain('"catalog" must be a map of toolsets');
  });

  it.each([
    ['E_TOOL_NAME_CONFLICT', { a: set(tool, tool) }, 'The toolset "a" has two tools called "find". Rename one.'],
    ['E_VALIDATION', { a: set({ ...tool, handler: undefined }) }, 'its tool "find": has no function'],
    ['E_VALIDATION', { a: set({ ...tool, inputSchema: { type: 'objct' } }) }, 'its tool "find": its inputSchema'],
    ['E_VALIDATION', { a: set({ ...tool, name: 'fi nd' }) }, 'its name is not valid'],
    ['E_VALIDATION', { a: set({ ...tool, description: '' }) }, 'has no description'],
    ['E_VALIDATION', { a: { ...set(), modules: ['mth'] } }, 'names the loader "mth", which is not in "moduleLoaders"'],
  ])('%s in a toolset that no client has enabled', async (reason, given, message) => {
    const error = await refusal(create({ catalog: given, moduleLoaders: { math: () => [] } }));
    expect(error.reason).toBe(reason);
    expect(error.message).toContain(message);
  });

  it('a tool with the name of a meta-tool, and a loader that is no function', async () => {
    const exposurePolicy = { namespaceToolsWithSetKey: false };
    const given = { a: set({ ...tool, name: 'list_tools' }) };
    expect((await refusal(create({ catalog: given, exposurePolicy }))).reason).toBe('E_TOOL_NAME_CONFLICT');
    expect((await refusal(create({ moduleLoaders: { math: [tool] } }))).message).toContain('must be a function');
  });

  it('two endpoints with the same address', async () => {
    const endpoint = (path: string) => ({ method: 'GET', path, handler: () => 1 });
    const customEndpoints = [endpoint('/users/:id'), endpoint('/users/:name')];
    expect((await refusal(create({ http: { customEndpoints } }))).message).toContain('GET /users/:name exists twice');
  });

  it('a denied toolset that does not exist is refused, an allowed or permitted one warned of', async () => {
    const denied = await refusal(create({ exposurePolicy: { denylist: ['admn'] } }));
    expect(denied.message).toContain('toolsets that do not exist: admn. Did you mean "admin"?');
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    atEnd(() => warned.mockRestore());
    await (await create({ exposurePolicy: { allowlist: ['serch'] } })).close();
    const permissions = { source: 'config', staticMap: { ann: ['search', 'admn'] } };
    await (await permit({ permissions })).close();
    expect(warned.mock.calls.map(([text]) => text)).toEqual([
      'exposurePolicy.allowlist names toolsets that do not exist: serch. Did you mean "search"?',
      'permissions name toolsets that do not exist: admn. Did you mean "admin"?',
    ]);
  });

  it('permissions that would not be used', async () => {
    const byHeader = { source: 'headers', staticMap: { ann: ['admin'] } };
    expect((await refusal(permit({ permissions: byHeader }))).message).toContain(
      'permissions.staticMap needs the source',
    );
    const byConfig = { source: 'config', staticMap: {}, headerName: 'x-sets' };
    expect((await refusal(permit({ permissions: byConfig }))).message).toContain(
      'permissions.headerName needs the source',
    );
  });
});

it('tells which tools a toolset has before it is enabled, and enables nothing', async () => {
  let loads = 0;
  const add = defineTool({ name: 'add', description: 'Adds', inputSchema: z.object({}), execute: () => 3 });
  const server = await createMcpServer({
    catalog: {
      search: { name: 'Search', description: 'Finds', tools: [{ ...tool, handler: () => 'x' }] },
      math: { name: 'Math', description: 'Sums', tools: [{ ...tool, name: 'pi' }], modules: ['math'] },
      flaky: { name: 'Flaky', description: 'Fails', tools: [tool], modules: ['flaky'] },
    },
    moduleLoaders: {
      math: () => {
        loads++;
        return [add];
      },
      flaky: () => Promise.reject(new Error('db is down')),
    },
    http: { port: 0 },
    logger: false,
    settings: {
      agent_policies: { bob: { tool_overrides: { math: ['add'] } } },
      default_policy: { allow_unknown_tools: true },
    },
  });
  atEnd(() => server.close());
  await server.start();
  for (const era of ERAS) {
    const client = await connect(era, server.url!, withId(`ann ${era}`.replaceAll(/\W/g, '')));
    const described = async (name: string) => client.json('describe_toolset', { name });
    const listed = async () =>
      ((await client.json('list_toolsets')).toolsets as { key: string; active: boolean; tools: string[] }[]).map(
        ({ key, active, tools }) => [key, active, tools],
      );
    const before = loads;
    expect(await listed()).toEqual([
      ['search', false, ['search.find']],
      ['math', false, before === 0 ? ['math.pi'] : ['math.pi', 'math.add']],
      ['flaky', false, ['flaky.find']],
    ]);
    // Listing runs no loader.
    expect(loads).toBe(before);
    expect(await described('math')).toMatchObject({ active: false, tools: ['math.pi', 'math.add'] });
    expect(loads).toBe(1);
    expect(await described('flaky')).toMatchObject({
      tools: ['flaky.find'],
      problem: expect.stringContaining('its loader "flaky" failed: db is down'),
    });
    expect((await listed())[1]).toEqual(['math', false, ['math.pi', 'math.add']]);
    expect(await client.names()).not.toContain('math.add');
    expect(client.changes()).toBe(0);
  }
  const bob = await connect(ERAS[0]!, server.url!, withId('bob'));
  expect(await bob.json('describe_toolset', { name: 'math' })).toMatchObject({ tools: ['math.add'] });
});
