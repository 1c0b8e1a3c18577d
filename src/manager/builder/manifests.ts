/** What the manifests of a repository say: its dependencies, and the secrets that its `server.json` declares. */
import { parse as parseToml } from 'smol-toml';
import { isObject, toObject } from '../../base/objects.ts';

/** Versions by package, and the names of variables that hold secrets. */
export interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
}

const readers: readonly (readonly [RegExp, (text: string) => Partial<Manifest>])[] = [
  [/(?:^|\/)package\.json$/, fromPackageJson],
  [/(?:^|\/)pyproject\.toml$/, fromPyproject],
  [/(?:^|\/)requirements\.txt$/, (text) => ({ dependencies: fromRequirements(text.split('\n')) })],
  [
    /\.dist-info\/METADATA$/,
    (text) => ({
      dependencies: fromRequirements([...text.matchAll(/^Requires-Dist: (.*)$/gm)].map(([, one]) => one!)),
    }),
  ],
  [/(?:^|\/)go\.mod$/, fromGoMod],
  [/(?:^|\/)server\.json$/, fromServerJson],
];

export function isManifest(path: string): boolean {
  return readers.some(([name]) => name.test(path));
}

/** A manifest that cannot be read says nothing. */
export function readManifest(path: string, text: string): Manifest {
  const read = readers.find(([name]) => name.test(path))?.[1];
  try {
    return { dependencies: {}, secrets: [], ...read?.(text) };
  } catch {
    return { dependencies: {}, secrets: [] };
  }
}

function fromPackageJson(text: string): Partial<Manifest> {
  return { dependencies: texts(toObject(JSON.parse(text) as unknown).dependencies) };
}

function fromPyproject(text: string): Partial<Manifest> {
  const { project, tool } = parseToml(text) as { project?: unknown; tool?: unknown };
  const { dependencies } = toObject(project);
  const { python: _, ...poetry } = texts(toObject(toObject(tool).poetry).dependencies);
  const listed = Array.isArray(dependencies) ? dependencies.filter((one) => typeof one === 'string') : [];
  return { dependencies: { ...poetry, ...fromRequirements(listed) } };
}

function fromRequirements(lines: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of lines) {
    const [, name, version = ''] =
      /^\s*([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*\(?((?:[<>=!~][^;#)]*)?)/.exec(line) ?? [];
    if (name !== undefined && !/;.*\bextra\s*==/.test(line)) found[name] = version.trim() || '*';
  }
  return found;
}

function fromGoMod(text: string): Partial<Manifest> {
  const found: Record<string, string> = {};
  for (const [, name, version, comment = ''] of text.matchAll(
    /^\s*(?:require\s+)?([\w.-]+\.[\w.-]+\/\S+)\s+(v\S+)(.*)$/gm,
  ))
    if (!comment.includes('indirect')) found[name!] = version!;
  return { dependencies: found };
}

function fromServerJson(text: string): Partial<Manifest> {
  const { packages } = toObject(JSON.parse(text) as unknown);
  const variables = (Array.isArray(packages) ? packages : []).flatMap((one) => {
    const { environmentVariables } = toObject(one);
    return Array.isArray(environmentVariables) ? environmentVariables : [];
  });
  return { secrets: variables.flatMap((one) => (isObject(one) && one.isSecret === true ? String(one.name) : [])) };
}

function texts(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(toObject(value)).map(([name, version]) => [name, typeof version === 'string' ? version : '*']),
  );
}
