/** Looks at the page of logins as a person does. */
import { Agent, fetch } from 'undici';
import { expect } from 'vitest';

/** A browser without scripts: it keeps cookies and follows redirects to the gateway only. Each request has a connection of its own. */
export function openBrowser() {
  const cookies = new Map<string, string>();
  const dispatcher = new Agent({ pipelining: 0 });
  return async (address: string, form?: Record<string, string>, headers: Record<string, string> = {}) => {
    for (let place = address, body = form; ; ) {
      const response = await fetch(place, {
        method: body === undefined ? 'GET' : 'POST',
        redirect: 'manual',
        dispatcher,
        headers: {
          cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
          'content-type': 'application/x-www-form-urlencoded',
          ...headers,
        },
        ...(body !== undefined && { body: new URLSearchParams(body).toString() }),
      });
      for (const cookie of response.headers.getSetCookie()) {
        expect(cookie).toMatch(/; HttpOnly; SameSite=Lax; Max-Age=\d+$/);
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
        cookies.set(name!, value!);
      }
      const next = response.headers.get('location');
      if (next === null) return { status: response.status, text: await response.text(), headers: response.headers };
      [place, body] = [new URL(next, place).href, undefined];
    }
  };
}

/** The value of a hidden field in a page. */
export const fieldIn = (text: string, name: string) =>
  new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? '';
export const unescaped = (text: string) => text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
