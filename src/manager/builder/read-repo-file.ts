/** `read_repo_file`: one file of a repository that was analyzed. */
import { isUtf8 } from 'node:buffer';
import { GatewayError } from '../../base/errors.ts';
import { didYouMean } from '../../base/text.ts';
import { listFiles, openRepository, readFiles, type Work } from './repositories.ts';

export interface RepoFile {
  readonly path: string;
  readonly content: string;
}

const MAX_BYTES = 1024 * 1024;

export async function readRepoFile(url: string, path: string, work: Work): Promise<RepoFile> {
  const repository = await openRepository(url, work.dataDir);
  const files = await listFiles(repository, work);
  // Looked up in the list of git, so no path can lead out of the repository.
  const file = files.find((one) => one.path === path.replace(/^\.\//, ''));
  if (file === undefined) {
    const hint = didYouMean(
      path,
      files.map((one) => one.path),
    );
    throw new GatewayError('usage', `The repository has no file ${JSON.stringify(path.slice(0, 200))}.${hint}`);
  }
  if (file.size > MAX_BYTES)
    throw new GatewayError('usage', `${path} has ${file.size} bytes, more than the 1 MiB that can be read.`);
  const [bytes] = await readFiles(repository, [file], work);
  if (!isUtf8(bytes!) || bytes!.includes(0)) throw new GatewayError('usage', `${path} is not a text.`);
  return { path: file.path, content: bytes!.toString('utf8') };
}
