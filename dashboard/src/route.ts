/** Where the page is. It stands after the `#`, so that one file serves every address and the gateway learns nothing of it. */
import { signal } from '@preact/signals';

export interface Route {
  /** The view, such as `catalog`. */
  readonly view: string;
  /** What is open in it, such as a tool; empty for none. */
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

export const route = signal<Route>(read());

window.addEventListener('hashchange', () => {
  route.value = read();
});

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const [view = '', ...rest] = path.split('/').map(decode);
  return { view: view || 'overview', rest: rest.filter(Boolean), query: new URLSearchParams(query) };
}

export function to(view: string, ...rest: readonly string[]): string {
  return `#/${[view, ...rest].map(encodeURIComponent).join('/')}`;
}

export function go(view: string, ...rest: readonly string[]): void {
  location.hash = to(view, ...rest);
}

/** An address that somebody typed may be no encoding at all. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
