/** Makes the folder a Git repository with one commit of all its files. */
import { execFileSync } from 'node:child_process';
import { type Files, tempFolder } from './temp.ts';

export function gitRepository(files: Files): string {
  const cwd = tempFolder(files);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], { cwd });
  git('init', '--quiet');
  git('add', '.');
  git('commit', '--quiet', '-m', 'The first one');
  return cwd;
}
