/** Secrets that are written out in an entry of a server, and the entry with references to the secrets store instead. */
import { headerSecrets, looksSecret, urlSecrets } from '../secrets/secret-values.ts';
import type { WrittenServer } from './edit-servers.ts';

export interface PlainSecret {
  /** Where it is written, such as `env.GITHUB_TOKEN`. */
  readonly place: string;
  /** What it can be called in the secrets store. */
  readonly name: string;
  readonly value: string;
}

/** Beginnings of keys that some services give out. */
const KNOWN =
  /^(?:gh[pousr]_|github_pat_|glpat-|sk-[A-Za-z0-9]|xox[abprs]-|AKIA[0-9A-Z]{16}$|AIza[0-9A-Za-z_-]{30}|hf_[A-Za-z0-9]{20})/;

export function plainSecrets(server: WrittenServer): PlainSecret[] {
  const found: PlainSecret[] = [];
  const add = (place: string, name: string, value: string) => {
    // What refers to a variable is elsewhere already.
    if (value.trim() === '' || value.includes('${')) return;
    found.push({ place, name: unusedName(nameFrom(name), value, found), value });
  };
  for (const [key, value] of Object.entries(server.env ?? {}))
    if (looksSecret(key) || KNOWN.test(value) || urlSecrets(value).length > 0) add(`env.${key}`, key, value);
  for (const [key, value] of Object.entries(server.headers ?? {})) {
    if (!looksSecret(key) && !KNOWN.test(value)) continue;
    const [whole = value, credential = whole] = headerSecrets({ [key]: value });
    add(`headers.${key}`, `${server.namespace}_${key}`, credential);
  }
  for (const [i, word] of (server.args ?? []).entries()) {
    const place = `args[${i}]`;
    const [, option = '', , value = ''] = /^-{1,2}([\w-]+)(=(.*))?$/s.exec(word) ?? [];
    const before = /^-{1,2}([\w-]+)$/.exec(server.args?.[i - 1] ?? '')?.[1] ?? '';
    if (option !== '' && looksSecret(option) && value !== '') add(place, option, value);
    else if (option === '' && looksSecret(before)) add(place, before, word);
    else if (KNOWN.test(word)) add(place, `${server.namespace}_key`, word);
    else for (const secret of urlSecrets(word)) add(place, `${server.namespace}_url_secret`, secret);
  }
  for (const secret of urlSecrets(server.url ?? '')) add('url', `${server.namespace}_url_secret`, secret);
  return found;
}

/** The same server, with `${secret:NAME}` in place of these. */
export function withReferences(server: WrittenServer, secrets: readonly PlainSecret[]): WrittenServer {
  // The longest first, because one may be a part of another.
  const ordered = [...secrets].sort((a, b) => b.value.length - a.value.length);
  const replace = (place: string, text: string) =>
    ordered
      .filter((secret) => secret.place === place)
      .reduce((left, { value, name }) => left.replaceAll(value, `\${secret:${name}}`), text);
  const inMap = (section: string, map: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(map).map(([key, value]) => [key, replace(`${section}.${key}`, value)]));
  return {
    ...server,
    ...(server.env && { env: inMap('env', server.env) }),
    ...(server.headers && { headers: inMap('headers', server.headers) }),
    ...(server.args && { args: server.args.map((word, i) => replace(`args[${i}]`, word)) }),
    ...(server.url !== undefined && { url: replace('url', server.url) }),
  };
}

function nameFrom(text: string): string {
  const name = text
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .toUpperCase();
  return /^[A-Z]/.test(name) ? name : `KEY_${name}`;
}

/** Equal values have one name. */
function unusedName(name: string, value: string, taken: readonly PlainSecret[]): string {
  const isFree = (one: string) => taken.every((other) => other.name !== one || other.value === value);
  let next = name;
  for (let n = 2; !isFree(next); n++) next = `${name}_${n}`;
  return next;
}
