/** Which variables of the gateway's environment the program of a server gets: few, plus those that are declared. */
import { matchesPattern } from '../base/pattern.ts';
import type { EnvVars } from '../config/expand.ts';
import { INSIDE } from '../config/inside.ts';
import type { Launch } from '../config/launch.ts';
import { looksSecret } from '../secrets/secret-values.ts';

type Program = Extract<Launch, { kind: 'stdio' }>;

/**
 * What programs need to find themselves, the network and a screen: the variables that the official SDKs pass on, those
 * of locale, time and temporary files, of proxies and certificates, and of `npx`, `uvx` and containers.
 */
const ORDINARY = new RegExp(
  `^(?:${[
    'HOME|LOGNAME|PATH|SHELL|TERM|USER',
    'APPDATA|COMSPEC|HOMEDRIVE|HOMEPATH|LOCALAPPDATA|PATHEXT|PROCESSOR_ARCHITECTURE|PROGRAMDATA|PROGRAMFILES',
    'SYSTEMDRIVE|SYSTEMROOT|USERNAME|USERPROFILE|WINDIR',
    'LANG|LANGUAGE|LC_\\w+|TZ|TMPDIR|TMP|TEMP|XDG_\\w+|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY',
    '(?:https?|all|no)_proxy|NODE_EXTRA_CA_CERTS|NODE_USE_SYSTEM_CA|SSL_CERT_\\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE',
    'npm_config_.+|UV_\\w+|VOLTA_HOME|PYENV_ROOT|DOCKER_(?:HOST|CONTEXT|CONFIG)',
  ].join('|')})$`,
  'i',
);

/** The environment of a server: what it inherits from ours, and what its configuration declares. */
export function serverEnvironment(
  launch: Pick<Program, 'env' | 'inherits' | 'withheld'>,
  ours: EnvVars,
): Record<string, string> {
  const inherited = Object.entries(ours).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && isInherited(entry[0], launch),
  );
  return { ...Object.fromEntries(inherited), ...launch.env };
}

function isInherited(name: string, { inherits = [], withheld = [] }: Pick<Program, 'inherits' | 'withheld'>): boolean {
  if (isOwn(name) || withheld.includes(name)) return false;
  if (name === INSIDE || inherits.some((pattern) => matchesPattern(pattern, name))) return true;
  return isOrdinary(name);
}

/** Whether every server gets it. */
export function isOrdinary(name: string): boolean {
  return ORDINARY.test(name) && !looksSecret(name);
}

/** Meant for Toolgate alone. */
function isOwn(name: string): boolean {
  return (
    (name.startsWith('TOOLGATE_') && name !== INSIDE) ||
    name === 'BEARER_TOKEN' ||
    name === 'MANAGER_INTERNAL_TOKEN' ||
    name === 'CORE_TOKEN' ||
    name.startsWith('SECRETS_KEY') ||
    /^OTEL_EXPORTER_OTLP_(?:\w+_)?HEADERS$/.test(name)
  );
}

/** Variables of ours that a text names and that the server does not get, although it could. */
export function missingVariables(text: string, launch: Program, ours: EnvVars): string[] {
  const got = serverEnvironment(launch, ours);
  const named = new Set(text.match(/\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/g) ?? []);
  return [...named].filter((name) => ours[name] && !(name in got) && !isOwn(name));
}
