/** What there is in each namespace, read from its files. Works for namespaces whose workers are down or have never run. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import { secretsIn } from '../config/launch-secrets.ts';
import { type SecretNames, sortSecrets } from '../config/wanted-secrets.ts';
import type { SecretStatus } from '../secrets/payload.ts';
import { openSecretStore } from '../store/secrets.ts';
import { checkPythonFiles, checkTypeScript } from './check-code.ts';
import { listManaged, type ManagedNamespace, readFileIn } from './managed-namespace.ts';
import type { CheckedCode, WrittenTool } from './read-typescript.ts';

/** A tool with the file that defines it. */
export interface FiledTool extends WrittenTool {
  readonly filename: string;
}

export interface FolderTools {
  readonly tools: readonly FiledTool[];
  /** What is wrong in the folder, with file and line. */
  readonly problems: readonly string[];
}

/** The tools in the source of a namespace. A tool that is made when its file runs is not among them. */
export async function toolsInSource({ found }: ManagedNamespace, env: EnvVars): Promise<FolderTools> {
  const { folder, parts, problems } = found;
  const checked: (readonly [string, CheckedCode | string])[] = [];
  for (const { language, files } of parts) {
    if (language === 'python') checked.push(...(await checkPython(folder, files, env)));
    else for (const file of files) checked.push([file, await checkFile(folder, file)]);
  }
  return {
    tools: checked.flatMap(([filename, one]) =>
      typeof one === 'string' ? [] : one.tools.map((tool) => ({ ...tool, filename })),
    ),
    problems: [
      ...problems,
      ...checked.flatMap(([filename, one]) => {
        if (typeof one === 'string') return [one];
        return one.problems.map(({ line, message }) => `${filename}:${line}: ${message}`);
      }),
    ],
  };
}

type CheckedFile = readonly [string, CheckedCode | string];

async function checkPython(folder: string, files: readonly string[], env: EnvVars): Promise<CheckedFile[]> {
  try {
    const results = await checkPythonFiles(
      files.map((file) => join(folder, file)),
      env,
    );
    return files.map((file, i) => [file, results[i]!]);
  } catch (error) {
    return files.map((file) => [file, `${file}: ${(error as Error).message}`]);
  }
}

async function checkFile(folder: string, file: string): Promise<CheckedCode | string> {
  try {
    return await checkTypeScript(file, (await readFileIn(folder, file)) ?? '');
  } catch (error) {
    return (error as Error).message;
  }
}

export type SecretsStatus = 'ok' | 'missing' | 'placeholders' | 'no_secrets_needed';

export interface NamespaceSummary {
  readonly namespace: ManagedNamespace;
  readonly tools: readonly FiledTool[];
  readonly problems: readonly string[];
  readonly hasRequirements: boolean;
  readonly secretsStatus: SecretsStatus;
}

export async function summarizeNamespaces(config: Config, env: EnvVars): Promise<NamespaceSummary[]> {
  const statuses = await openSecretStore(config.dataDir, config.vault).list();
  const all = await listManaged(config);
  return Promise.all(
    all.map(async (namespace) => {
      const { tools, problems } = await toolsInSource(namespace, env);
      return {
        namespace,
        tools,
        problems,
        hasRequirements: await hasRequirements(namespace),
        secretsStatus: statusOf(secretsOf(namespace, statuses)),
      };
    }),
  );
}

async function hasRequirements({ found }: ManagedNamespace): Promise<boolean> {
  const files = ['requirements.txt', 'package.json'].map((name) => lstat(join(found.folder, name)).catch(() => null));
  return (await Promise.all(files)).some((stats) => stats?.isFile() === true);
}

/** The secrets that a namespace asks for, and which of them are set. */
export function secretsOf({ name, found, servers }: ManagedNamespace, statuses: readonly SecretStatus[]): SecretNames {
  const [server] = servers;
  const names = server === undefined ? found.metadata.secrets : secretsIn(server.launch);
  return sortSecrets(names, name, statuses);
}

function statusOf({ satisfied, missing, placeholders }: SecretNames): SecretsStatus {
  if (missing.length > 0) return 'missing';
  if (placeholders.length > 0) return 'placeholders';
  return satisfied.length > 0 ? 'ok' : 'no_secrets_needed';
}
