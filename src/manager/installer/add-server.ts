/** Adds a server to a configuration file. Everything else in it stays as it is, comments included. */
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, extname } from 'node:path';
import { GatewayError } from '../../base/errors.ts';
import { replaceFileDurably } from '../../base/files.ts';
import { withLock } from '../../base/lock.ts';
import { isObject, isSameValue, toObject } from '../../base/objects.ts';
import { parseConfig } from '../../config/parse.ts';
import { serverSchema } from '../../config/servers.ts';
import type { WrittenServer } from './to-server.ts';

/** Creates the file if there is none. Throws if a server has the name already. */
export async function addServer(file: string, server: WrittenServer): Promise<void> {
  const { error } = serverSchema.safeParse(server);
  if (error !== undefined)
    throw new GatewayError(
      'usage',
      `The server cannot be written: ${error.issues[0]!.path.join('.')} ${error.issues[0]!.message}.`,
    );
  await mkdir(dirname(file), { recursive: true });
  await withLock(file, async () => {
    const before = existsSync(file) ? await readFile(file, 'utf8') : '';
    const old = before.trim() === '' ? {} : toObject((await parseConfig(before, file)).value);
    if (namesOf(old).includes(server.namespace))
      throw new GatewayError('usage', `${file} has a server "${server.namespace}" already. Choose another name.`);
    const after = await edit(before, old, server, file);
    await requireSame(old, after, server, file);
    await replaceFileDurably(file, after);
  });
}

function namesOf({ servers, mcpServers }: Record<string, unknown>): string[] {
  const listed = Array.isArray(servers) ? servers.map((one) => String(toObject(one).namespace ?? '')) : [];
  const maps = [servers, mcpServers].filter(isObject);
  return [
    ...listed,
    ...maps.flatMap((map) => Object.entries(map).map(([name, one]) => String(toObject(one).namespace ?? name))),
  ];
}

/** Where the file has its servers: in a list, or in a map by name. */
type ServersPlace = { readonly key: 'servers' | 'mcpServers'; readonly form: 'list' | 'map' };

function placeOf(old: Record<string, unknown>, file: string): ServersPlace {
  if (isObject(old.servers)) return { key: 'servers', form: 'map' };
  if (old.servers === undefined && (isObject(old.mcpServers) || file.endsWith('.mcp.json')))
    return { key: 'mcpServers', form: 'map' };
  return { key: 'servers', form: 'list' };
}

async function edit(text: string, old: Record<string, unknown>, server: WrittenServer, file: string): Promise<string> {
  const place = placeOf(old, file);
  const { namespace, ...rest } = server;
  const entry = place.form === 'list' ? server : rest;
  switch (extname(file).toLowerCase()) {
    case '.toml':
      return editToml(text, old, place, namespace, entry);
    case '.json': {
      const { applyEdits, modify } = await import('jsonc-parser');
      const path = place.form === 'list' ? [place.key, -1] : [place.key, namespace];
      const start = text.trim() === '' ? '{}\n' : text;
      // A list must exist before something can be added to it.
      const ready =
        place.form === 'list' && old.servers === undefined
          ? applyEdits(start, modify(start, [place.key], [], { formattingOptions: { insertSpaces: true, tabSize: 2 } }))
          : start;
      return applyEdits(
        ready,
        modify(ready, path, entry, {
          formattingOptions: { insertSpaces: true, tabSize: 2 },
          isArrayInsertion: place.form === 'list',
        }),
      );
    }
    default: {
      const { parseDocument } = await import('yaml');
      const document = parseDocument(text);
      if (document.contents === null || !isObject(old) || Object.keys(old).length === 0)
        return `${text === '' || text.endsWith('\n') ? text : `${text}\n`}${String(new (await import('yaml')).Document({ [place.key]: [server] }))}`;
      if (place.form === 'map') document.setIn([place.key, namespace], document.createNode(entry));
      else if (old.servers === undefined || old.servers === null) document.set(place.key, document.createNode([entry]));
      else document.addIn([place.key], document.createNode(entry));
      return document.toString({ lineWidth: 0 });
    }
  }
}

function editToml(
  text: string,
  old: Record<string, unknown>,
  { key, form }: ServersPlace,
  namespace: string,
  entry: object,
): string {
  const isWritable = form === 'map' || old.servers === undefined || /^\s*\[\[\s*servers\s*\]\]/m.test(text);
  if (!isWritable)
    throw new GatewayError('usage', 'The list "servers" is written on one line. Write it as [[servers]] tables first.');
  const head = form === 'list' ? `[[${key}]]` : `[${key}.${JSON.stringify(namespace)}]`;
  const lines = Object.entries(entry).map(([name, value]) => `${name} = ${tomlValue(value)}`);
  const start = text === '' || text.endsWith('\n') ? text : `${text}\n`;
  return `${start}${start === '' ? '' : '\n'}${head}\n${lines.join('\n')}\n`;
}

/** Strings of JSON are strings of TOML too. */
function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (isObject(value))
    return `{ ${Object.entries(value)
      .map(([name, one]) => `${/^[\w-]+$/.test(name) ? name : JSON.stringify(name)} = ${tomlValue(one)}`)
      .join(', ')} }`;
  return JSON.stringify(value);
}

/** Reads the new text, and makes sure that it says the same as before and one server more. */
async function requireSame(
  old: Record<string, unknown>,
  text: string,
  server: WrittenServer,
  file: string,
): Promise<void> {
  const fresh = { ...toObject((await parseConfig(text, file)).value) };
  const { key, form } = placeOf(old, file);
  const { namespace, ...rest } = server;
  const servers = fresh[key];
  let added: unknown;
  if (Array.isArray(servers)) {
    added = servers.at(-1);
    fresh[key] = servers.slice(0, -1);
    if (old[key] === undefined || old[key] === null) fresh[key] = old[key];
  } else if (isObject(servers)) {
    const { [namespace]: one, ...others } = servers;
    added = one;
    fresh[key] = old[key] === undefined ? undefined : others;
  }
  const isSame = isSameValue(clean(fresh), clean(old)) && isSameValue(added, form === 'list' ? server : rest);
  if (!isSame)
    throw new GatewayError(
      'usage',
      `${file} could not be edited without changing something else. Add the server yourself.`,
    );
}

function clean(value: Record<string, unknown>): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
