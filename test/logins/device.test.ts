/** A login on another device, with a code. The provider sets the pause between questions, so this takes some seconds. */
import { expect, it } from 'vitest';
import { startProvider } from '../support/authorization-server.ts';
import { within } from '../support/child.ts';
import { runCli, startCli } from '../support/cli.ts';
import { startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { KEY } from './login.ts';

it('logs in with a code that is confirmed elsewhere', async () => {
  const provider = await startProvider();
  const guarded = await startGuarded(provider.issuer);
  const cwd = tempFolder({ 'tools.toml': `controls = []\n[servers.remote]\nurl = "${guarded.url}"\n` });
  const child = startCli(['login', 'remote', '--device'], { cwd, env: KEY });
  const [, address, code] = await waitFor(() => /\n {2}(\S+)\nThe code is (\S+)\n/.exec(child.stderr()));
  expect(address).toContain(provider.issuer);
  await confirmOnPhone(`${provider.issuer}/device`, code!, 'alice');
  const exit = await within(40_000, child.exited);
  expect(exit?.code, child.stderr()).toBe(0);
  expect(child.stdout()).toContain('remote: logged in as alice');
  const { stdout } = await runCli(['list', 'servers', '--json'], { cwd, env: KEY });
  expect(JSON.parse(stdout)[0]).toMatchObject({ state: 'up', login: { who: 'alice' } });
});

/** Types the code on the page of the provider, signs in and consents. */
async function confirmOnPhone(page: string, code: string, login: string): Promise<void> {
  const cookies = new Map<string, string>();
  const visit = async (place: string, form?: Record<string, string>) => {
    const response = await fetch(place, {
      method: form ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form && { body: new URLSearchParams(form) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
      cookies.set(name!, value!);
    }
    return { text: await response.text(), next: response.headers.get('location') };
  };
  const xsrfIn = (text: string) => /name="xsrf" value="([^"]+)"/.exec(text)?.[1] ?? '';
  const first = await visit(page);
  const asked = await visit(page, { xsrf: xsrfIn(first.text), user_code: code });
  let { next } = await visit(page, { xsrf: xsrfIn(asked.text) || xsrfIn(first.text), user_code: code, confirm: 'yes' });
  for (let step = 0; next !== null && step < 10; step++) {
    const place = new URL(next, page).href;
    const shown = await visit(place);
    if (shown.next === null && shown.text.includes('name="prompt"')) {
      const isLogin = shown.text.includes('name="login"');
      const form = isLogin ? { prompt: 'login', login, password: 'any' } : { prompt: 'consent' };
      ({ next } = await visit(place, form as Record<string, string>));
    } else next = shown.next;
  }
}
