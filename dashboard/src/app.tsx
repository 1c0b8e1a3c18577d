/** The frame around the views: head, navigation, notes, the list of keys, and the end of a session. */
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { isOver, remove, replica } from './api.ts';
import { Icon, type IconName, Mark } from './icons.tsx';
import { isHelpOpen, VIEWS } from './keys.ts';
import { Dot } from './parts/bits.tsx';
import { Dialog } from './parts/dialog.tsx';
import { Toasts } from './parts/toast.tsx';
import { route, to } from './route.ts';
import { approvals, failure, servers, session } from './state.ts';
import { isLive } from './stream.ts';
import { nextTheme, theme } from './theme.ts';
import { Access } from './views/access.tsx';
import { Approvals, notifyOfApprovals } from './views/approvals.tsx';
import { Audit } from './views/audit.tsx';
import { Calls } from './views/calls.tsx';
import { Catalog } from './views/catalog.tsx';
import { Namespaces } from './views/namespaces.tsx';
import { Overview } from './views/overview.tsx';
import { isTrouble } from './views/server-sheet.tsx';
import { Servers } from './views/servers.tsx';
import { Toolsets } from './views/toolsets.tsx';

const PAGES: Readonly<Record<string, ComponentType>> = {
  overview: Overview,
  calls: Calls,
  catalog: Catalog,
  toolsets: Toolsets,
  access: Access,
  approvals: Approvals,
  namespaces: Namespaces,
  audit: Audit,
  servers: Servers,
};

const isMenuOpen = signal(false);
notifyOfApprovals();

export function App() {
  const { view } = route.value;
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  const title = VIEWS.find(([, name]) => name === view)?.[2] ?? 'Not found';
  useEffect(() => {
    isMenuOpen.value = false;
    document.title = `${title} · Toolgate`;
    if (first.current) first.current = false;
    else {
      main.current?.focus();
      if (main.current) main.current.scrollTop = 0;
    }
  }, [view]);
  if (isOver.value) return <Over />;
  const Page = PAGES[view];
  return (
    <div class="shell">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <Head />
      <Navigation view={view} />
      <main class="main" id="main" tabIndex={-1} ref={main}>
        {Page ? (
          <Page key={view} />
        ) : (
          <div class="view">
            <h1>Not found</h1>
            <p>
              There is no view <code>{view}</code>. <a href={to('overview')}>Go to the overview</a>
            </p>
          </div>
        )}
      </main>
      <Toasts />
      {isHelpOpen.value ? <Keys /> : null}
    </div>
  );
}

function Head() {
  const next = { system: 'light', light: 'dark', dark: 'system' }[theme.value];
  const icon: IconName = theme.value === 'system' ? 'system' : theme.value === 'light' ? 'sun' : 'moon';
  const info = session.value;
  const waiting = approvals.value.length;
  return (
    <header class="top">
      <button
        type="button"
        class="button plain menu-button"
        aria-expanded={isMenuOpen.value}
        aria-controls="nav"
        aria-label={waiting > 0 ? `Menu, ${waiting} waiting` : 'Menu'}
        onClick={() => {
          isMenuOpen.value = !isMenuOpen.value;
        }}
      >
        <Icon name="menu" />
        {waiting > 0 ? <Dot tone="warn" /> : null}
      </button>
      <a class="brand" href={to('overview')}>
        <Mark />
        Toolgate
      </a>
      <span class="where" title={info?.file ?? undefined}>
        {info ? [info.version, info.url, info.file].filter(Boolean).join('  ·  ') : ''}
      </span>
      <span class="grow" />
      {replica.value && replica.value.count > 1 ? (
        <span
          class="chip wide-only"
          title="Calls, servers, clients, logs and figures are those of one process. Toolsets, access and approvals are those of all. A new page may show another one."
        >
          one of {replica.value.count} processes
        </span>
      ) : null}
      <span class="line small muted" role="status">
        <Dot tone={isLive.value ? 'good' : 'warn'} />
        {isLive.value ? 'live' : failure.value ? 'not connected' : 'connecting'}
      </span>
      <button
        type="button"
        class="button plain"
        onClick={nextTheme}
        aria-label={`Colours: ${theme.value}. Change to ${next}`}
      >
        <Icon name={icon} />
      </button>
      <button
        type="button"
        class="button plain"
        aria-label="Keys"
        onClick={() => {
          isHelpOpen.value = true;
        }}
      >
        <kbd>?</kbd>
      </button>
      <button type="button" class="button plain wide-only" onClick={() => void logOut()}>
        Log out
      </button>
    </header>
  );
}

async function logOut(): Promise<void> {
  await remove('session').catch(() => undefined);
  isOver.value = true;
}

function Navigation({ view }: { view: string }) {
  const waiting = approvals.value.length;
  const down = servers.value.filter(({ state }) => isTrouble(state)).length;
  return (
    <nav class={`nav ${isMenuOpen.value ? 'open' : ''}`} id="nav" aria-label="Views">
      <ul>
        {VIEWS.map(([key, name, title]) => (
          <li key={name}>
            <a href={to(name)} aria-current={name === view ? 'page' : undefined} aria-keyshortcuts={`g ${key}`}>
              <Icon name={name as IconName} />
              {title}
              {name === 'approvals' && waiting > 0 ? (
                <span class="count hot">
                  {waiting}
                  <span class="hidden"> waiting</span>
                </span>
              ) : null}
              {name === 'servers' && down > 0 ? (
                <span class="count hot">
                  {down}
                  <span class="hidden"> with trouble</span>
                </span>
              ) : null}
            </a>
          </li>
        ))}
      </ul>
      <button type="button" class="button narrow-only" onClick={() => void logOut()}>
        Log out
      </button>
    </nav>
  );
}

function Keys() {
  const close = () => {
    isHelpOpen.value = false;
  };
  return (
    <Dialog title="Keys" close={close}>
      <dl class="keys">
        {VIEWS.map(([key, name, title]) => [
          <dt key={`t${name}`}>
            <kbd>g</kbd> <kbd>{key}</kbd>
          </dt>,
          <dd key={`d${name}`}>{title}</dd>,
        ])}
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>to the filter</dd>
        <dt>
          <kbd>↑</kbd> <kbd>↓</kbd> <kbd>Home</kbd> <kbd>End</kbd>
        </dt>
        <dd>
          through a table; <kbd>Enter</kbd> opens a row
        </dd>
        <dt>
          <kbd>Space</kbd>
        </dt>
        <dd>pauses live calls</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>closes what is open, clears a filter</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>this list</dd>
      </dl>
    </Dialog>
  );
}

function Over() {
  return (
    <main class="main" id="main">
      <div class="view">
        <div class="panel">
          <div class="empty">
            <Mark />
            <h1>The session is over</h1>
            <p>
              Run <code>toolgate dashboard</code> for a new link, and open it in this browser.
            </p>
            <p>
              <button type="button" class="button" onClick={() => location.reload()}>
                Try again
              </button>
            </p>
          </div>
        </div>
      </div>
    </main>
  );
}
