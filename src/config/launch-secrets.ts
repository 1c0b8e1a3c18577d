/**
 * Secrets in launches: which ones a launch refers to, how they are filled in, and which values of a configuration are
 * secret.
 */
import { fillIn, referencesIn, referTo } from '../secrets/reference.ts';
import { environmentSecrets, headerSecrets, looksSecret, urlSecrets } from '../secrets/secret-values.ts';
import { type EnvVars, expand, variablesIn } from './expand.ts';
import { isHeaderValue, isHttpUrl, type Launch, SECRET_VARIABLE } from './launch.ts';
import { mapOAuth, oauthSecrets, oauthTexts } from './oauth.ts';
import type { ServerSection } from './servers.ts';

/** The names of the secrets that a launch refers to. */
export function secretsIn(launch: Launch): string[] {
  const required = launch.kind === 'folder' ? launch.secrets : [];
  return [...new Set([...required, ...textsOf(launch).flatMap(referencesIn)])];
}

function textsOf(launch: Launch): string[] {
  switch (launch.kind) {
    case 'inline':
      return [];
    case 'http':
      return [launch.url, ...Object.values(launch.headers), ...oauthTexts(launch.oauth)];
    case 'folder':
      return [...Object.values(launch.env), ...Object.values(launch.defaults)];
    case 'stdio':
      return [launch.file, ...launch.args, ...Object.values(launch.env)];
  }
}

const ASSIGNMENTS = /^-c (?:exec )?(?:[A-Za-z_]\w*=(?:"[^"]*"|'[^']*'|\S*)\s+)*/;
const SECRET_IN_LINE = new RegExp(`\\$\\{${SECRET_VARIABLE}(\\w+)\\}`, 'g');

/** The names of the secrets in the command line itself, which the system shows to every user. */
export function secretsInArguments(launch: Launch): string[] {
  if (launch.kind !== 'stdio') return [];
  // An assignment in front of the program becomes part of its environment.
  const line = launch.args.join(' ').replace(ASSIGNMENTS, '');
  const inLine = [...line.matchAll(SECRET_IN_LINE)].map((match) => match[1]!);
  return [...new Set([...[launch.file, ...launch.args].flatMap(referencesIn), ...inLine])];
}

/** A launch with its secrets filled in, for the start of a server. It is never kept. */
export function fillLaunch(launch: Launch, lookUp: (name: string) => string | undefined): Launch {
  const fill = (text: string) => fillIn(text, lookUp);
  const fillAll = (map: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(map).map(([name, text]) => [name, fill(text)]));
  switch (launch.kind) {
    case 'inline':
      return launch;
    case 'folder':
      return { ...launch, env: fillAll(launch.env), defaults: fillAll(launch.defaults) };
    case 'stdio':
      return { ...launch, file: fill(launch.file), args: launch.args.map(fill), env: fillAll(launch.env) };
    case 'http': {
      const filled = {
        ...launch,
        url: fill(launch.url),
        headers: fillAll(launch.headers),
        ...(launch.oauth && { oauth: mapOAuth(launch.oauth, fill) }),
      };
      if (!isHttpUrl(filled.url))
        throw new Error('with its secrets filled in, its url begins with neither http:// nor https://');
      if (!Object.values(filled.headers).every(isHeaderValue))
        throw new Error(
          'with its secrets filled in, a header contains a character that HTTP headers cannot have, such as a line break',
        );
      return filled;
    }
  }
}

/** Variables whose values every user of the machine knows. */
const ORDINARY = /^(?:HOME|USER|LOGNAME|SHELL|PATH|PWD|TMPDIR|TERM|LANG|HOSTNAME|LC_\w+|XDG_\w+)$/;

/** The values that must not be logged. Servers are read as written, because there variables are not yet replaced. */
export function secretValues(servers: readonly ServerSection[], env: EnvVars): string[] {
  return [...new Set([...environmentSecrets(env), ...servers.flatMap((server) => serverSecrets(server, env))])];
}

function serverSecrets({ env: variables, headers, url, oauth }: ServerSection, env: EnvVars): string[] {
  const text = (written: string): string => {
    const expansion = expand(written, env, referTo);
    return 'text' in expansion ? expansion.text : '';
  };
  const texts = (map: Readonly<Record<string, string>> | null) =>
    Object.fromEntries(Object.entries(map ?? {}).map(([name, written]) => [name, text(written)]));
  const fromEnvironment = Object.entries(variables ?? {}).flatMap(([name, written]) => {
    const taken = variablesIn(written).filter((one) => env[one] && !ORDINARY.test(one));
    // A default that replaces a variable is not secret, because anyone can read it in the file.
    if (taken.length === 0) return looksSecret(name) ? [text(written)] : [];
    return [text(written), ...taken.map((one) => env[one] ?? '')];
  });
  return [
    ...fromEnvironment,
    ...environmentSecrets(texts(variables)),
    ...headerSecrets(texts(headers)),
    ...urlSecrets(text(url ?? '')),
    ...(oauth ? oauthSecrets(oauth).map(text) : []),
  ];
}
