/** Guesses which values are secret, by the names of variables, headers and parameters, and by the position in a URL. */
import { percentDecoded } from '../base/text.ts';

const PARTS = ['TOKEN', 'SECRET', 'PASSWORD', 'PASSWD', 'PASSPHRASE', 'CREDENTIAL', 'COOKIE', 'APIKEY', 'SIGNATURE'];
const WORDS = new Set(['KEY', 'KEYS', 'PASS', 'PWD', 'AUTH', 'AUTHORIZATION', 'PRIVATE', 'PAT', 'SIG', 'JWT']);
/** Names that end in one of these are about a secret, but do not hold it. */
const ABOUT = new Set(['SOCK', 'FILE', 'PATH', 'DIR', 'MODE', 'TYPE', 'METHOD', 'URL', 'URI', 'HOST', 'PORT', 'TTL']);
/** The folders of a shell, not passwords. */
const FOLDERS = new Set(['PWD', 'OLDPWD']);

/** Whether a variable, header or parameter of this name holds a secret. */
export function looksSecret(name: string): boolean {
  if (FOLDERS.has(name)) return false;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toUpperCase()
    .split(/[^A-Z0-9]+/);
  if (ABOUT.has(words.at(-1) ?? '')) return false;
  return words.some((word) => WORDS.has(word) || PARTS.some((part) => word.includes(part)));
}

/** The secrets in an environment. */
export function environmentSecrets(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(env).flatMap(([name, value = '']) => {
    if (TELEMETRY_HEADERS.test(name)) return telemetrySecrets(value);
    return looksSecret(name) ? [value, ...urlSecrets(value)] : urlSecrets(value);
  });
}

const TELEMETRY_HEADERS = /^OTEL_EXPORTER_OTLP_(?:\w+_)?HEADERS$/;

/** Of headers in the form `name=value,other=value`, with values as in a URL. */
function telemetrySecrets(text: string): string[] {
  const values = text.split(',').flatMap((header) => {
    const [name = '', ...rest] = header.split('=');
    const value = rest.join('=').trim();
    return value === '' ? [] : [value, ...headerSecrets({ [name.trim()]: percentDecoded(value) ?? value })];
  });
  return [text, ...values];
}

/** Headers that are never secret. */
const HARMLESS = /^(?:accept|content|user-agent|cache-control|mcp-(?!session)|origin|referer|host$)/i;

/** The secrets in headers that are sent to a server. */
export function headerSecrets(headers: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(headers).flatMap(([name, value = '']) => (HARMLESS.test(name) ? [] : credentialsIn(value)));
}

/** The whole value, the part after the scheme, and the decoded user and password of Basic. */
function credentialsIn(value: string): string[] {
  const [, scheme = '', rest] = /^([A-Za-z][\w-]*) +(.+)$/.exec(value.trim()) ?? [];
  if (rest === undefined) return [value];
  if (scheme.toLowerCase() !== 'basic') return [value, rest];
  const pair = Buffer.from(rest, 'base64').toString();
  return [value, rest, pair, pair.slice(pair.indexOf(':') + 1)];
}

/** The secrets in a URL: the password, and parameters with secret names. Empty if the text is not a URL. */
export function urlSecrets(text: string): string[] {
  if (!text.includes('://') || !URL.canParse(text)) return [];
  const { username, password, searchParams } = new URL(text);
  // A user without a password is a token.
  const user = password === '' ? username : password;
  const parameters = [...searchParams].filter(([name]) => looksSecret(name)).map(([, value]) => value);
  return [...(user === '' ? [] : [user, percentDecoded(user) ?? user]), ...parameters];
}
