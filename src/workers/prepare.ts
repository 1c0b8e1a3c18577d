/** Prepares the dependencies of a namespace, language by language; one that fails does not keep the other from it. */
import { messageOf } from '../base/errors.ts';
import { EnvironmentError } from './environment.ts';
import type { Namespace } from './scan-folder.ts';
import type { Language } from './tool-files.ts';
import { TOOLCHAINS } from './toolchains.ts';

export interface Prepared {
  readonly namespace: string;
  readonly language: Language;
  /** Null where it is ready; else what is wrong, and the end of the log. */
  readonly error: { readonly message: string; readonly log: string } | null;
}

export async function prepareNamespace(
  { name, folder, parts }: Namespace,
  dataDir: string,
  progress: (language: Language, message: string) => void,
  signal: AbortSignal | null = null,
): Promise<Prepared[]> {
  const prepared: Prepared[] = [];
  for (const { language } of parts) {
    const toolchain = await TOOLCHAINS[language]();
    const request = {
      namespace: name,
      folder,
      dataDir,
      progress: (message: string) => progress(language, message),
      signal,
    };
    try {
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
