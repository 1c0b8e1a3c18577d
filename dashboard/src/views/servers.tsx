/** Servers: all of them, logging in to those with an address, and new ones from the registry. */
import { useId, useState } from 'preact/hooks';
import type {
  InstallServerReport,
  LoginRow,
  LoginsReport,
  RegistryReport,
  ReloadReport,
  ServerCard,
  StartedLoginReport,
} from '../../../src/dashboard/api-types.ts';
import { at, get, post, remove } from '../api.ts';
import { ago, hasWords, plural, safeLink, wordsOf } from '../format.ts';
import { useLoad, useSettled } from '../load.ts';
import { Away, Chip, Empty, Failure } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Filter } from '../parts/filter.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Tabs } from '../parts/tabs.tsx';
import { attempt, toast } from '../parts/toast.tsx';
import { go, route, to } from '../route.ts';
import { loginChanges, servers, session } from '../state.ts';
import { SERVER_COLUMNS, ServerSheet, StateCell } from './server-sheet.tsx';

export function Servers() {
  const tab = route.value.rest[0] ?? 'all';
  return (
    <div class="view">
      <div class="head">
        <h1>Servers</h1>
        <span class="grow" />
        <button
          type="button"
          class="button"
          onClick={() =>
            attempt(
              () => post<ReloadReport>('reload'),
              ({ restarted, problems }) =>
                `Everything is read again. ${plural(restarted.length, 'server')} restarted, ${plural(problems.length, 'problem')}.`,
            )
          }
        >
          Read the configuration again
        </button>
      </div>
      <Tabs
        label="Parts of servers"
        chosen={tab}
        choose={(key) => go('servers', key)}
        tabs={[
          { key: 'all', title: 'All', body: () => <All /> },
          { key: 'logins', title: 'Logins', body: () => <Logins /> },
          ...(session.value?.features.registry === false
            ? []
            : [{ key: 'registry', title: 'Add from the registry', body: () => <Registry /> }]),
        ]}
      />
    </div>
  );
}

function All() {
  const [filter, setFilter] = useState('');
  const [open, setOpen] = useState<string | null>(null);
  const words = wordsOf(filter);
  const textOf = ({ key, kind, state, detail }: ServerCard) => [key, kind, state, detail].join(' ').toLowerCase();
  const rows = servers.value.filter((row) => hasWords(textOf(row), words));
  const shown = servers.value.find(({ key }) => key === open);
  return (
    <>
      <div class="head">
        <Filter label="Filter servers" value={filter} change={setFilter} />
        <span class="sub small">{plural(rows.length, 'server')}</span>
      </div>
      <Table
        label="Servers"
        rows={rows}
        columns={SERVER_COLUMNS}
        id={({ key }) => key}
        height={608}
        open={({ key }) => setOpen(key)}
        empty={
          words.length > 0 ? (
            <Empty title="No server is like that" />
          ) : (
            <Empty title="No servers yet">
              <a href={to('servers', 'registry')}>Search the registry</a>, or add one with <code>toolgate add</code>.
            </Empty>
          )
        }
      />
      {shown ? <ServerSheet server={shown} close={() => setOpen(null)} /> : null}
    </>
  );
}

function Logins() {
  const list = useLoad<LoginsReport>((signal) => get('logins', {}, signal), [loginChanges.value, servers.value]);
  const begin = async (row: LoginRow) => {
    // Opened at once, because browsers block a window that comes after waiting.
    const tab = window.open('about:blank', '_blank');
    const started = await attempt(() => post<StartedLoginReport>(`logins/${at(row.server)}`));
    const url = safeLink(started?.url);
    if (url === null) {
      tab?.close();
      if (started) toast('The server named an address that cannot be opened.', true);
    } else if (tab) {
      tab.opener = null;
      tab.location.replace(url);
    } else toast('The browser blocked the window. The link stands next to the server.');
    list.again();
  };
  const end = async (row: LoginRow) => {
    await attempt(async () => {
      await remove(`logins/${at(row.server)}`);
      return true;
    }, `Logged out of ${row.server}.`);
    list.again();
  };
  const columns: readonly Column<LoginRow>[] = [
    { key: 'state', title: 'State', width: '104px', wide: true, cell: ({ state }) => <StateCell state={state} /> },
    {
      key: 'server',
      title: 'Server',
      width: 'minmax(80px, 0.8fr)',
      cell: ({ server }) => <b title={server}>{server}</b>,
    },
    {
      key: 'login',
      title: 'Logged in as',
      width: 'minmax(80px, 1fr)',
      cell: ({ login, pending, failure }) =>
        pending ? (
          <Away href={pending.url}>go on in this window</Away>
        ) : failure ? (
          <span class="bad" title={failure}>
            {failure}
          </span>
        ) : login ? (
          <span title={login.issuer}>
            {login.who ?? 'somebody'} <span class="muted">{login.expires ? `ends ${ago(login.expires)}` : ''}</span>
          </span>
        ) : (
          <span class="muted">nobody</span>
        ),
    },
    {
      key: 'url',
      title: 'Address',
      width: 'minmax(60px, 1.4fr)',
      wide: true,
      cell: ({ url }) => (
        <span class="muted" title={url}>
          {url}
        </span>
      ),
    },
    {
      key: 'act',
      title: 'Change',
      width: '90px',
      right: true,
      cell: (row) =>
        row.login ? (
          <button
            type="button"
            class="button tiny"
            aria-label={`Log out of ${row.server}`}
            onClick={() => void end(row)}
          >
            Log out
          </button>
        ) : row.canLogIn ? (
          <button
            type="button"
            class="button tiny"
            aria-label={`Log in to ${row.server}`}
            onClick={() => void begin(row)}
          >
            Log in
          </button>
        ) : null,
    },
  ];
  return (
    <>
      {list.error ? <Failure error={list.error} again={list.again} /> : null}
      {list.value?.unusable ? <p class="note warn">{list.value.unusable}</p> : null}
      <Table
        label="Logins"
        rows={list.value?.servers ?? []}
        columns={columns}
        id={({ server }) => server}
        height={480}
        empty={
          <Empty title={list.value ? 'No server has an address' : 'Loading…'}>
            Only servers that are reached by HTTP ask for a login.
          </Empty>
        }
      />
    </>
  );
}

type Found = RegistryReport['servers'][number];

const FOUND: readonly Column<Found>[] = [
  { key: 'name', title: 'Server', width: 'minmax(110px, 1.2fr)', cell: ({ name }) => <b title={name}>{name}</b> },
  { key: 'version', title: 'Version', width: '84px', wide: true, cell: ({ version }) => version },
  { key: 'type', title: 'Kind', width: '70px', cell: ({ package_type: type }) => <Chip>{type}</Chip> },
  {
    key: 'about',
    title: 'About',
    width: 'minmax(60px, 2fr)',
    wide: true,
    cell: ({ description }) => (
      <span class="muted" title={description}>
        {description}
      </span>
    ),
  },
];

function Registry() {
  const [typed, setTyped] = useState('');
  const [chosen, setChosen] = useState<Found | null>(null);
  const q = useSettled(typed, 350);
  const list = useLoad<RegistryReport | null>(
    async (signal) => (q.trim() === '' ? null : get<RegistryReport>('registry', { q }, signal)),
    [q],
  );
  return (
    <>
      <div class="head">
        <Filter label="Search the registry" value={typed} change={setTyped} placeholder="What should it do?" />
        <span class="sub small">{list.value ? <Away href={list.value.registry} /> : null}</span>
      </div>
      {list.error ? <Failure error={list.error} again={list.again} /> : null}
      <Table
        label="Servers in the registry"
        rows={list.value?.servers ?? []}
        columns={FOUND}
        id={({ name, version, package: from }) => `${name} ${version} ${from}`}
        height={480}
        open={setChosen}
        empty={
          q.trim() === '' ? (
            <Empty title="Search for a server">
              Words are looked for in the MCP registry. Nothing is installed by searching.
            </Empty>
          ) : list.value === undefined && !list.error ? (
            <Empty title="It asks the registry…" />
          ) : (
            <Empty title="The registry has none like that" />
          )
        }
      />
      {chosen ? <Install found={chosen} close={() => setChosen(null)} /> : null}
    </>
  );
}

const KINDS = ['npm', 'pypi', 'oci', 'remote'];

function Install({ found, close }: { found: Found; close: () => void }) {
  const id = useId();
  const [namespace, setNamespace] = useState(
    (found.name.split('/').at(-1) ?? '').replace(/[^A-Za-z0-9_-]/g, '-').slice(0, 30),
  );
  const [report, setReport] = useState<InstallServerReport | null>(null);
  const [inputs, setInputs] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const install = async () => {
    setBusy(true);
    const answer = await attempt(() =>
      post<InstallServerReport>('registry/install', {
        // By the name of its entry: that of a package, or an address, can be in several.
        package: found.name,
        namespace,
        ...(KINDS.includes(found.package_type) && { kind: found.package_type }),
        inputs,
      }),
    );
    setReport(answer ?? null);
    setBusy(false);
  };
  const isDone = report?.installed === true;
  return (
    <Dialog
      title={`Install ${found.name}`}
      close={close}
      footer={
        isDone ? (
          <button type="button" class="button primary" onClick={close}>
            Done
          </button>
        ) : (
          <>
            <button type="button" class="button" onClick={close}>
              Cancel
            </button>
            <button type="submit" form={id} class="button primary" disabled={busy || namespace === ''}>
              {busy ? 'It installs…' : 'Install'}
            </button>
          </>
        )
      }
    >
      <p class="wrap">{found.description}</p>
      <p class="small">
        <code class="wrap">{found.package}</code> {found.version} · <Away href={found.source_url}>source</Away>
      </p>
      {isDone ? (
        <div class="stack" role="status">
          <p class="note good">
            {report.name} {report.version} is installed as <b>{report.namespace}</b>, in <code>{report.file}</code>.
          </p>
          {report.secrets.length > 0 ? (
            <p class="note warn">
              It needs {report.secrets.join(', ')}. <a href={to('namespaces')}>Set them</a>.
            </p>
          ) : null}
          {report.notes.map((note) => (
            <p key={note} class="wrap muted">
              {note}
            </p>
          ))}
        </div>
      ) : (
        <form
          id={id}
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            void install();
          }}
        >
          <div class="field">
            <label for={`${id}-name`}>Names of its tools begin with</label>
            <input
              id={`${id}-name`}
              class="input"
              autocomplete="off"
              value={namespace}
              onInput={(event) => setNamespace(event.currentTarget.value)}
            />
          </div>
          {report ? <p class="note warn">{report.error}</p> : null}
          {(report?.installed === false ? report.inputs : []).map(({ name, description, choices }) => (
            <div class="field" key={name}>
              <label for={`${id}-${name}`}>{name}</label>
              {choices ? (
                <select
                  id={`${id}-${name}`}
                  class="input"
                  value={inputs[name] ?? ''}
                  onChange={(event) => setInputs({ ...inputs, [name]: event.currentTarget.value })}
                >
                  <option value="">choose</option>
                  {choices.map((choice) => (
                    <option key={choice} value={choice}>
                      {choice}
                    </option>
                  ))}
                </select>
              ) : (
                <input
                  id={`${id}-${name}`}
                  class="input"
                  autocomplete="off"
                  value={inputs[name] ?? ''}
                  onInput={(event) => setInputs({ ...inputs, [name]: event.currentTarget.value })}
                />
              )}
              <p class="about">{description}</p>
            </div>
          ))}
          <p class="muted small">Installing downloads and runs a program of other people on this computer.</p>
        </form>
      )}
    </Dialog>
  );
}
