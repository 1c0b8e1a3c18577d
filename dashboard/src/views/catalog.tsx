/** Every tool, resource and prompt: search, definition, what it takes, what it costs, how it changed, and a try. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { CatalogRow, CatalogWindow, ChangeKind, ItemDetail, ItemKind } from '../../../src/dashboard/api-types.ts';
import { at, get, post } from '../api.ts';
import { compact, duration, number, plural, pretty } from '../format.ts';
import { useLoad, useSettled } from '../load.ts';
import { usePaged } from '../paged.ts';
import { Chip, Code, Empty, Facts, Failure, type Tone } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Diff } from '../parts/diff.tsx';
import { Filter } from '../parts/filter.tsx';
import { SchemaTable } from '../parts/schema-table.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Tabs } from '../parts/tabs.tsx';
import { attempt } from '../parts/toast.tsx';
import { go, route, to } from '../route.ts';
import { catalogChanges } from '../state.ts';
import { TryIt } from './try-it.tsx';

const KINDS: readonly (readonly [ItemKind, string])[] = [
  ['tool', 'Tools'],
  ['resource', 'Resources'],
  ['template', 'Templates'],
  ['prompt', 'Prompts'],
];

const CHANGES: Readonly<Record<ChangeKind, Tone>> = {
  new: 'accent',
  gone: 'warn',
  compatible: 'accent',
  breaking: 'bad',
  suspicious: 'bad',
};

const COLUMNS: readonly Column<CatalogRow>[] = [
  {
    key: 'name',
    title: 'Name',
    width: 'minmax(120px, 1.5fr)',
    cell: ({ name }) => <b title={name}>{name}</b>,
  },
  {
    key: 'state',
    title: 'State',
    width: '118px',
    wide: true,
    cell: ({ held, change, active }) =>
      held ? (
        <Chip tone="bad">held: {change ?? 'changed'}</Chip>
      ) : change ? (
        <Chip tone={CHANGES[change]}>{change}</Chip>
      ) : active ? (
        <Chip tone="good">seen first</Chip>
      ) : (
        <Chip>on demand</Chip>
      ),
  },
  { key: 'server', title: 'Server', width: 'minmax(60px, 0.6fr)', wide: 640, cell: ({ server }) => server },
  {
    key: 'category',
    title: 'Category',
    width: '84px',
    wide: 820,
    cell: ({ category }) => <span class="muted">{category ?? '–'}</span>,
  },
  { key: 'tokens', title: 'Tokens', width: '64px', right: true, cell: ({ tokens }) => number(tokens) },
  {
    key: 'about',
    title: 'About',
    width: 'minmax(60px, 2fr)',
    wide: 640,
    cell: ({ title, description }) => (
      <span class="muted" title={description}>
        {title && title !== description ? `${title} · ` : ''}
        {firstLine(description)}
      </span>
    ),
  },
];

const firstLine = (text: string) => text.trim().split('\n', 1)[0]?.slice(0, 300) ?? '';

export function Catalog() {
  const { rest, query } = route.value;
  const [typed, setTyped] = useState('');
  const [kind, setKind] = useState<ItemKind>((rest[0] as ItemKind) ?? 'tool');
  const [server, setServer] = useState(query.get('server') ?? '');
  const [category, setCategory] = useState('');
  const [changed, setChanged] = useState(false);
  const q = useSettled(typed);
  const columns = useMemo(() => COLUMNS, []);
  const list = usePaged<CatalogRow, CatalogWindow>(
    (offset, limit, signal) =>
      get('catalog', { kind, q, server, category, changed: changed ? 1 : '', offset, limit }, signal),
    (answer) => answer.items,
    [kind, q, server, category, changed],
    catalogChanges.value,
  );
  const { last } = list;
  const isNarrowed = q !== '' || server !== '' || category !== '' || changed;
  const [openKind, ...nameParts] = rest;
  const openName = nameParts.join('/');
  return (
    <div class="view full">
      <div class="head">
        <h1>Catalog</h1>
        <Filter label="Search the catalog" value={typed} change={setTyped} placeholder="What should it do?" />
        <select
          class="input"
          aria-label="Kind"
          value={kind}
          onChange={(event) => setKind(event.currentTarget.value as ItemKind)}
        >
          {KINDS.map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
        <select
          class="input"
          aria-label="Server"
          value={server}
          onChange={(event) => setServer(event.currentTarget.value)}
        >
          <option value="">every server</option>
          {server && !last?.servers.some((one) => one.server === server) ? (
            <option value={server}>{server}</option>
          ) : null}
          {(last?.servers ?? []).map((one) => (
            <option key={one.server} value={one.server}>
              {one.server} ({number(one.items)})
            </option>
          ))}
        </select>
        {last && last.categories.length > 0 ? (
          <select
            class="input"
            aria-label="Category"
            value={category}
            onChange={(event) => setCategory(event.currentTarget.value)}
          >
            <option value="">every category</option>
            {last.categories.map((one) => (
              <option key={one.category} value={one.category}>
                {one.category} ({number(one.items)})
              </option>
            ))}
          </select>
        ) : null}
        <label class="check">
          <input type="checkbox" checked={changed} onChange={(event) => setChanged(event.currentTarget.checked)} />
          changed only
        </label>
        <span class="sub small" role="status">
          {last ? `${number(last.total)} found, about ${compact(last.tokens)} tokens` : ''}
        </span>
      </div>
      {list.error ? <Failure error={list.error} again={list.again} /> : null}
      <Missing texts={last?.missing ?? []} />
      <Table
        label={KINDS.find(([value]) => value === kind)?.[1] ?? 'Items'}
        rows={list.rows}
        range={list.range}
        columns={columns}
        id={(row) => `${row.kind} ${row.name}`}
        selected={openKind ? `${openKind} ${openName}` : null}
        open={(row) => go('catalog', row.kind, row.name)}
        empty={
          last === undefined ? (
            <Empty title="Loading…" />
          ) : isNarrowed ? (
            <Empty title="Nothing is like that">Other words may find it, or fewer of them.</Empty>
          ) : (
            <Empty title="There is none">Servers that offer some show here as soon as they are up.</Empty>
          )
        }
      />
      {openKind && openName ? (
        <ItemSheet
          key={`${openKind} ${openName}`}
          kind={openKind as ItemKind}
          name={openName}
          close={() => go('catalog')}
        />
      ) : null}
    </div>
  );
}

/** Servers whose items are not in the list, in one line. A click shows why. */
function Missing({ texts }: { texts: readonly string[] }) {
  if (texts.length === 0) return null;
  return (
    <details class="note warn">
      <summary>
        {plural(texts.length, 'server')} {texts.length === 1 ? 'is' : 'are'} away. What{' '}
        {texts.length === 1 ? 'it' : 'they'} offer{texts.length === 1 ? 's' : ''} is not listed here.
      </summary>
      <ul class="stack tight">
        {texts.map((text) => (
          <li key={text} class="wrap">
            {text}
          </li>
        ))}
      </ul>
    </details>
  );
}

function ItemSheet({ kind, name, close }: { kind: ItemKind; name: string; close: () => void }) {
  const { value, error, again } = useLoad<ItemDetail>(
    (signal) => get(`catalog/${at(kind, name)}`, {}, signal),
    [kind, name, catalogChanges.value],
  );
  const asked = route.value.query.get('tab') ?? 'about';
  const [tab, setTab] = useState(asked);
  useEffect(() => setTab(asked), [asked]);
  return (
    <Dialog sheet title={name} close={close}>
      {error ? <Failure error={error} again={again} /> : null}
      {value ? (
        <Tabs
          label="Parts"
          chosen={tab}
          choose={setTab}
          tabs={[
            { key: 'about', title: 'About', body: () => <About item={value} /> },
            { key: 'try', title: 'Try it', body: () => <TryIt item={value} /> },
            ...(value.pin
              ? [
                  {
                    key: 'changes',
                    title: <>Changes {value.held ? <Chip tone="bad">held</Chip> : null}</>,
                    body: () => <Changes item={value} again={again} />,
                  },
                ]
              : []),
            {
              key: 'definition',
              title: 'Definition',
              body: () => <Code text={pretty(value.definition)} label="Definition" />,
            },
          ]}
        />
      ) : error ? null : (
        <p class="muted">Loading…</p>
      )}
    </Dialog>
  );
}

function About({ item }: { item: ItemDetail }) {
  const hints = Object.entries(item.annotations ?? {}).filter(([, value]) => typeof value === 'boolean');
  return (
    <>
      {item.heldReason ? <p class="note bad">{item.heldReason}</p> : null}
      <div class="line">
        <Chip>{item.kind}</Chip>
        {item.active ? <Chip tone="good">seen first</Chip> : <Chip>on demand</Chip>}
        {item.category ? <Chip tone="accent">{item.category}</Chip> : null}
        {hints.map(([hint, value]) => (
          <Chip key={hint} tone={hint === 'destructiveHint' && value === true ? 'warn' : ''}>
            {hint.replace(/Hint$/, '')}: {value ? 'yes' : 'no'}
          </Chip>
        ))}
      </div>
      {item.title ? <h3 class="wrap">{item.title}</h3> : null}
      <p class="wrap">{item.description || 'It has no description.'}</p>
      <Facts
        rows={[
          ['Server', item.server],
          ['Its name there', <code key="n">{item.upstreamName}</code>],
          ['Cost', `about ${plural(item.tokens, 'token')} in every list that has it`],
          ['Toolsets', item.toolsets.length > 0 ? item.toolsets.join(', ') : 'none'],
          [
            'Used',
            item.usage.calls === 0
              ? 'not yet'
              : `${plural(item.usage.calls, 'call')}, ${plural(item.usage.errors, 'error')}, half within ${duration(item.usage.p50)}`,
          ],
          ['Found by', item.examples.join(' · ')],
        ]}
      />
      {item.inputSchema ? (
        <>
          <h3>What it takes</h3>
          <SchemaTable schema={item.inputSchema} label="What it takes" />
        </>
      ) : null}
      {item.outputSchema ? (
        <>
          <h3>What it answers with</h3>
          <SchemaTable schema={item.outputSchema} label="What it answers with" />
        </>
      ) : null}
      <p>
        <a href={`${to('access')}?q=${encodeURIComponent(item.name)}`}>Who may use it</a>
      </p>
    </>
  );
}

function Changes({ item, again }: { item: ItemDetail; again: () => void }) {
  const { pin } = item;
  if (!pin) return null;
  const approve = async () => {
    await attempt(
      () => post('commands/lock-approve', { names: [pin.approveName], hash: pin.hash }),
      `${item.name} is approved as it is now.`,
    );
    again();
  };
  return (
    <>
      <div class="line">
        <Chip tone={CHANGES[pin.verdict]}>{pin.verdict}</Chip>
        <span class="muted">against what was approved</span>
      </div>
      <ul class="stack tight">
        {pin.reasons.map((reason) => (
          <li key={reason} class="note warn">
            {reason}
          </li>
        ))}
      </ul>
      <Diff lines={pin.diff} label="Changes" />
      <div class="line">
        <button type="button" class="button primary" onClick={() => void approve()}>
          Approve this definition
        </button>
        <span class="muted small">Read all of it first: a model does what descriptions say.</span>
      </div>
    </>
  );
}
