/** Folders of tools: their files and errors, the secrets and packages they need, and what their workers write. */
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type {
  LogRow,
  LogsReport,
  NamespaceDetail,
  NamespaceFile,
  NamespaceRow,
  NamespacesReport,
  SecretRow,
  SecretsReport,
} from '../../../src/dashboard/api-types.ts';
import { at, get, put, remove } from '../api.ts';
import { ago, hasWords, number, plural, size, time, wordsOf } from '../format.ts';
import { useLoad } from '../load.ts';
import { Chip, Code, Empty, Failure, Panel } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Filter } from '../parts/filter.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { attempt } from '../parts/toast.tsx';
import { go, route } from '../route.ts';
import { catalogChanges, servers } from '../state.ts';
import { useStream } from '../stream.ts';
import { StateCell } from './server-sheet.tsx';

const COLUMNS: readonly Column<NamespaceRow>[] = [
  { key: 'state', title: 'State', width: '104px', cell: ({ state }) => <StateCell state={state} /> },
  {
    key: 'name',
    title: 'Namespace',
    width: 'minmax(90px, 1fr)',
    sort: ({ name }) => name,
    cell: ({ name }) => <b title={name}>{name}</b>,
  },
  { key: 'languages', title: 'Language', width: '110px', wide: 640, cell: ({ languages }) => languages.join(', ') },
  { key: 'files', title: 'Files', width: '54px', right: true, wide: true, cell: ({ files }) => number(files) },
  { key: 'tools', title: 'Tools', width: '54px', right: true, wide: true, cell: ({ tools }) => number(tools) },
  {
    key: 'trouble',
    title: 'Needs you',
    width: 'minmax(90px, 1fr)',
    cell: ({ problems, missingSecrets }) => (
      <>
        {problems > 0 ? <Chip tone="bad">{plural(problems, 'error')}</Chip> : null}{' '}
        {missingSecrets.length > 0 ? <Chip tone="warn">{plural(missingSecrets.length, 'secret')} missing</Chip> : null}
      </>
    ),
  },
  {
    key: 'folder',
    title: 'Folder',
    width: 'minmax(60px, 1.4fr)',
    wide: 760,
    cell: ({ folder }) => (
      <span class="muted" title={folder}>
        {folder}
      </span>
    ),
  },
];

export function Namespaces() {
  const open = route.value.rest[0];
  const list = useLoad<NamespacesReport>(
    (signal) => get('namespaces', {}, signal),
    [catalogChanges.value, servers.value],
  );
  if (open !== undefined) return <Namespace key={open} name={open} changed={list.again} />;
  return (
    <div class="view">
      <div class="head">
        <h1>Namespaces</h1>
        <span class="sub">folders of tools</span>
      </div>
      {list.error ? <Failure error={list.error} again={list.again} /> : null}
      <Table
        label="Namespaces"
        rows={list.value?.namespaces ?? []}
        columns={COLUMNS}
        id={({ name }) => name}
        height={320}
        open={({ name }) => go('namespaces', name)}
        empty={
          <Empty title={list.value ? 'No folders of tools' : 'Loading…'}>
            A file with a function in <code>.toolgate/tools/NAME/</code> is a tool. <code>toolgate new</code> writes a
            first one.
          </Empty>
        }
      />
      <Secrets />
      <Logs source={null} />
    </div>
  );
}

const FILE_COLUMNS: readonly Column<NamespaceFile>[] = [
  { key: 'file', title: 'File', width: 'minmax(90px, 1fr)', cell: ({ file }) => <code title={file}>{file}</code> },
  { key: 'language', title: 'Language', width: '90px', wide: true, cell: ({ language }) => language },
  { key: 'tools', title: 'Tools', width: 'minmax(90px, 1.4fr)', cell: ({ tools }) => tools.join(', ') || '–' },
  { key: 'bytes', title: 'Size', width: '70px', right: true, wide: true, cell: ({ bytes }) => size(bytes) },
  { key: 'modified', title: 'Changed', width: '86px', right: true, wide: true, cell: ({ modified }) => ago(modified) },
];

function Namespace({ name, changed }: { name: string; changed: () => void }) {
  const { value, error, again } = useLoad<NamespaceDetail>(
    (signal) => get(`namespaces/${at(name)}`, {}, signal),
    [name, catalogChanges.value, servers.value],
  );
  const renew = () => {
    again();
    changed();
  };
  return (
    <div class="view">
      <div class="head">
        <a class="button plain" href="#/namespaces" aria-label="Back to all namespaces">
          ←
        </a>
        <h1 class="wrap">{name}</h1>
        {value ? <StateCell state={value.state} /> : null}
        <span class="sub wrap">{value?.description || value?.detail}</span>
      </div>
      {error ? <Failure error={error} again={again} /> : null}
      {value ? (
        <>
          {value.fileProblems.length > 0 ? (
            <Panel title="Errors" sub={plural(value.fileProblems.length, 'error')} bare>
              <ul class="list">
                {value.fileProblems.map(({ file, line, message, isKept }) => (
                  <li key={`${file}${line}${message}`} class="wrap">
                    <code>{line === null ? file : `${file}:${line}`}</code>
                    <span class="wrap">{message}</span>
                    {isKept ? <Chip tone="warn">the last good version runs</Chip> : null}
                  </li>
                ))}
              </ul>
            </Panel>
          ) : null}
          <Panel title="Files" sub={plural(value.sources.length, 'file')} bare>
            <Table
              label="Files"
              rows={value.sources}
              columns={FILE_COLUMNS}
              id={({ file }) => file}
              height={288}
              empty={<Empty title="No tool files" />}
            />
          </Panel>
          <div class="cols">
            <SecretsPanel rows={value.secrets} unusable={null} changed={renew} />
            <Panel title="Packages" sub={value.isolation ?? ''}>
              {value.packages.problem ? <p class="note bad">{value.packages.problem}</p> : null}
              {value.packages.python.length + value.packages.node.length === 0 ? (
                <p class="muted">It needs no packages.</p>
              ) : (
                <ul class="line">
                  {[...value.packages.python, ...value.packages.node].map((one) => (
                    <li key={one}>
                      <Chip>{one}</Chip>
                    </li>
                  ))}
                </ul>
              )}
            </Panel>
          </div>
          {value.output ? (
            <Panel title="Output of its worker">
              <Code text={value.output} label="Output" />
            </Panel>
          ) : null}
        </>
      ) : error ? null : (
        <p class="muted">Loading…</p>
      )}
      <Logs source={name} />
    </div>
  );
}

function Secrets() {
  const list = useLoad<SecretsReport>((signal) => get('secrets', {}, signal), [catalogChanges.value]);
  if (list.error) return <Failure error={list.error} again={list.again} />;
  if (!list.value) return null;
  return <SecretsPanel rows={list.value.secrets} unusable={list.value.unusable} changed={list.again} />;
}

/** Where it is kept and who asks for it, each named once. */
function secretUse({ scope, wantedBy }: SecretRow): string {
  const others = wantedBy.filter((one) => one !== scope);
  return [scope === 'global' ? 'for every server' : `for ${scope}`, ...others].join(', ');
}

interface SecretsProperties {
  readonly rows: readonly SecretRow[];
  readonly unusable: string | null;
  readonly changed: () => void;
}

function SecretsPanel({ rows, unusable, changed }: SecretsProperties) {
  const [asked, setAsked] = useState<SecretRow | null>(null);
  // What was done here counts at once. The gateway may take a moment until it says the same.
  const [done, setDone] = useState<Readonly<Record<string, SecretRow['status']>>>({});
  const keyOf = ({ scope, name }: SecretRow) => `${scope} ${name}`;
  const drop = async (row: SecretRow) => {
    const { name, scope } = row;
    const forget = async () => {
      await remove('secrets', { name, scope });
      return true;
    };
    if (await attempt(forget, `${name} is forgotten.`)) setDone((old) => ({ ...old, [keyOf(row)]: 'missing' }));
    changed();
  };
  const shown = rows.map((row) => ({ ...row, status: done[keyOf(row)] ?? row.status }));
  return (
    <Panel title="Secrets" sub="values are never shown" bare>
      {unusable ? (
        <div class="body">
          <p class="note warn">{unusable}</p>
        </div>
      ) : null}
      {rows.length === 0 ? (
        <Empty title="No secrets are asked for" />
      ) : (
        <ul class="list">
          {shown.map((row) => (
            <li key={keyOf(row)}>
              <code class="clip" title={row.name}>
                {row.name}
              </code>
              <Chip tone={row.status === 'set' ? 'good' : 'warn'}>{row.status}</Chip>
              <span class="muted small clip wide-only">{secretUse(row)}</span>
              <span class="grow" />
              <button
                type="button"
                class="button tiny"
                aria-label={`${row.status === 'set' ? 'Replace' : 'Set'} ${row.name}`}
                onClick={() => setAsked(row)}
              >
                {row.status === 'set' ? 'Replace' : 'Set'}
              </button>
              {row.status === 'set' ? (
                <button
                  type="button"
                  class="button tiny danger"
                  aria-label={`Forget ${row.name}`}
                  onClick={() => void drop(row)}
                >
                  Forget
                </button>
              ) : null}
            </li>
          ))}
        </ul>
      )}
      {asked ? (
        <SetSecret
          row={asked}
          close={() => setAsked(null)}
          done={() => {
            setDone((old) => ({ ...old, [keyOf(asked)]: 'set' }));
            setAsked(null);
            changed();
          }}
        />
      ) : null}
    </Panel>
  );
}

function SetSecret({ row, close, done }: { row: SecretRow; close: () => void; done: () => void }) {
  const id = useId();
  const [value, setValue] = useState('');
  const save = async () => {
    const saved = await attempt(
      () => put<SecretRow>('secrets', { name: row.name, scope: row.scope, value }),
      `${row.name} is set.`,
    );
    // The value leaves the page as soon as it is kept.
    setValue('');
    if (saved) done();
  };
  return (
    <Dialog
      title={`Set ${row.name}`}
      close={close}
      footer={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" form={id} class="button primary" disabled={value === ''}>
            Keep it
          </button>
        </>
      }
    >
      <form
        id={id}
        class="field"
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <label for={`${id}-value`}>Value</label>
        <input
          id={`${id}-value`}
          class="input"
          type="password"
          autocomplete="new-password"
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
        <p class="about">
          It is encrypted on this computer for {row.scope === 'global' ? 'every server' : row.scope}, and never shown
          again.
        </p>
      </form>
    </Dialog>
  );
}

const MOST_LINES = 1_000;
const DRAWN = 400;

function Logs({ source }: { source: string | null }) {
  const [lines, setLines] = useState<readonly LogRow[]>([]);
  const [filter, setFilter] = useState('');
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const add = (more: readonly LogRow[]) =>
    setLines((old) => {
      const known = new Set(old.map(({ id }) => id));
      const own = more.filter((line) => !known.has(line.id) && (source === null || line.source === source));
      return own.length === 0 ? old : [...old, ...own].sort((a, b) => a.id - b.id).slice(-MOST_LINES);
    });
  useEffect(() => {
    get<LogsReport>('logs', { source, limit: 400 }).then(
      (report) => add(report.lines),
      () => undefined,
    );
  }, [source]);
  useStream('logs', (batch) => add(batch.lines));
  useEffect(() => {
    if (isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  const words = wordsOf(filter);
  const shown = lines.filter((line) => hasWords(`${line.source} ${line.text}`.toLowerCase(), words)).slice(-DRAWN);
  return (
    <Panel
      title="Logs"
      sub="live"
      action={<Filter label="Filter logs" value={filter} change={setFilter} placeholder="Filter lines" />}
    >
      <section
        class="logs"
        ref={box}
        aria-label="Log lines"
        tabIndex={0}
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 8;
        }}
      >
        {shown.length === 0 ? <span class="muted">No lines yet.</span> : null}
        {shown.map((line) => (
          <div key={line.id}>
            <span class="muted">
              {time(line.at)} {source === null ? `${line.source} ` : ''}
            </span>
            <span class={line.kind === 'failure' ? 'bad' : line.kind === 'refused' ? 'warn' : undefined}>
              {line.text}
            </span>
          </div>
        ))}
      </section>
    </Panel>
  );
}
