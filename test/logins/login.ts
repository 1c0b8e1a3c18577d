/** Logs in with `toolgate login`, as a person with a browser would. */
import { expect } from 'vitest';
import { signIn } from '../support/authorization-server.ts';
import { within } from '../support/child.ts';
import { startCli } from '../support/cli.ts';
import { waitFor } from '../support/processes.ts';

export const KEY = { SECRETS_KEY: 'a key that only this test has' };

/** Resolves to what the command printed. */
export async function logIn(
  cwd: string,
  user: string,
  args: readonly string[] = ['remote'],
  env: Readonly<Record<string, string>> = KEY,
): Promise<{ readonly code: number | null; readonly text: string; readonly page: string }> {
  const child = startCli(['login', ...args, '--no-browser'], { cwd, env });
  const address = new URL(await waitFor(() => /^\s+(http:\S+)$/m.exec(child.stderr())?.[1]));
  const parameters = await signIn(address, user);
  const back = new URL(address.searchParams.get('redirect_uri')!);
  back.search = parameters.toString();
  const page = await (await fetch(back)).text();
  const exit = await within(20_000, child.exited);
  expect(exit, child.stderr()).toBeDefined();
  return { code: exit!.code, text: `${child.stdout()}${child.stderr()}`, page };
}
