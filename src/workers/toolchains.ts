/** What prepares a folder of each language to be run. Loaded when it is wanted: most gateways need neither. */
import type { Environment, EnvironmentRequest } from './environment.ts';
import type { Language } from './tool-files.ts';

export interface Toolchain {
  /** Rejects with an EnvironmentError that says what to do. */
  prepare(request: EnvironmentRequest): Promise<Environment>;
  /** Tries again what failed before, though nothing was changed since. */
  forgetFailures(request: Pick<EnvironmentRequest, 'namespace' | 'dataDir'>): void | Promise<void>;
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
