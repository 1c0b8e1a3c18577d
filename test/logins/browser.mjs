/** A browser with a person in front of it, for `BROWSER`: signs in at the address, consents, and returns. Usage: browser.mjs USER ADDRESS */
const [user, address] = process.argv.slice(2);
const cookies = new Map();

async function visit(place, form) {
  const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
  const body = form && new URLSearchParams(form);
  const response = await fetch(place, { method: form ? 'POST' : 'GET', redirect: 'manual', headers, body });
  for (const cookie of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie);
    cookies.set(name, value);
  }
  return response;
}

const end = new URL(address).searchParams.get('redirect_uri');
let place = address;
while (!place.startsWith(end)) {
  let response = await visit(place);
  if (response.status === 200) {
    const isLogin = (await response.text()).includes('name="login"');
    response = await visit(place, isLogin ? { prompt: 'login', login: user, password: 'any' } : { prompt: 'consent' });
  }
  place = new URL(response.headers.get('location'), place).href;
}
await fetch(place);
