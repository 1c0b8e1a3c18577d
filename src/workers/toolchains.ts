/**
 * The toolchain of each language prepares a folder of tools to run. Loaded on demand, because most gateways need none.
 */
import { messageOf } from '../base/errors.ts';
import { EnvironmentError, type EnvironmentRequest, type WorkerEnvironment } from './environment.ts';
import { requireIsolation } from './isolation.ts';
import type { Namespace } from './scan-folder.ts';
import type { Language } from './tool-files.ts';

export interface Toolchain {
  /** Rejects with an EnvironmentError that says what to do. */
  prepare(request: EnvironmentRequest): Promise<WorkerEnvironment>;
  /** The next `prepare` tries again what failed before, although nothing has changed. */
  forgetFailures(request: Pick<EnvironmentRequest, 'namespace' | 'dataDir'>): Promise<void>;
}

export const TOOLCHAINS: Readonly<Record<Language, () => Promise<Toolchain>>> = {
  async python() {
    const { preparePython, forgetPythonFailures } = await import('./python-environment.ts');
    return {
      prepare: preparePython,
      forgetFailures: ({ dataDir, namespace }) => forgetPythonFailures(dataDir, namespace),
    };
  },
  async typescript() {
    const { prepareNode, forgetNodeFailures } = await import('./node-environment.ts');
    return { prepare: prepareNode, forgetFailures: forgetNodeFailures };
  },
};

/** The outcome for one language of a namespace. */
export interface Prepared {
  readonly namespace: string;
  readonly language: Language;
  /** Null on success; otherwise what is wrong, and the end of the installer's output. */
  readonly error: { readonly message: string; readonly log: string } | null;
}

/** A folder whose dependencies are installed, for these languages. */
export interface PreparedFolder
  extends Pick<Namespace, 'name' | 'folder'>,
    Pick<EnvironmentRequest, 'isolation' | 'packages'> {
  readonly parts: readonly { readonly language: Language }[];
}

/** Installs the dependencies of a namespace, one language after the other. If one fails, the next is still tried. */
export async function prepareNamespace(
  { name, folder, parts, isolation, packages }: PreparedFolder,
  dataDir: string,
  progress: (language: Language, message: string) => void,
  env: EnvironmentRequest['env'],
  signal: AbortSignal | null = null,
): Promise<Prepared[]> {
  const prepared: Prepared[] = [];
  for (const { language } of parts) {
    const toolchain = await TOOLCHAINS[language]();
    const request = {
      namespace: name,
      folder,
      dataDir,
      isolation,
      packages,
      env,
      progress: (message: string) => progress(language, message),
      signal,
    };
    try {
      await requireIsolation(isolation);
      await toolchain.forgetFailures(request);
      await toolchain.prepare(request);
      prepared.push({ namespace: name, language, error: null });
    } catch (error) {
      const log = error instanceof EnvironmentError ? error.log : '';
      prepared.push({ namespace: name, language, error: { message: messageOf(error), log } });
    }
  }
  return prepared;
}
