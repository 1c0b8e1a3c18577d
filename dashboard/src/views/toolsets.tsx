/** Toolsets: which there are, who has them, and an editor with the cost in view. */
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import type {
  SessionPage,
  ToolChoiceRow,
  ToolsetDetail,
  ToolsetRow,
  ToolsetsReport,
} from '../../../src/dashboard/api-types.ts';
import { at, get, post } from '../api.ts';
import { compact, hasWords, number, plural, wordsOf } from '../format.ts';
import { Icon } from '../icons.tsx';
import { useLoad, useSettled } from '../load.ts';
import { Chip, Empty, Failure, Panel } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Filter } from '../parts/filter.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { attempt } from '../parts/toast.tsx';
import { go, route } from '../route.ts';
import { agents, catalogChanges, overview, toolsetChanges } from '../state.ts';

const COLUMNS: readonly Column<ToolsetRow>[] = [
  {
    key: 'name',
    title: 'Toolset',
    width: 'minmax(100px, 1fr)',
    sort: ({ name }) => name,
    cell: ({ name, equipped }) => (
      <>
        <b title={name}>{name}</b> {equipped ? <Chip tone="good">for all</Chip> : null}
      </>
    ),
  },
  {
    key: 'size',
    title: 'Tools',
    width: '60px',
    right: true,
    sort: ({ size }) => -size,
    cell: ({ size }) => number(size),
  },
  {
    key: 'tokens',
    title: 'Tokens',
    width: '72px',
    right: true,
    sort: ({ tokens }) => -tokens,
    cell: ({ tokens }) => compact(tokens),
  },
  {
    key: 'sessions',
    title: 'Equipped by',
    width: 'minmax(80px, 0.8fr)',
    wide: 640,
    cell: ({ sessions }) =>
      sessions.length === 0 ? (
        <span class="muted">nobody</span>
      ) : (
        <span title={sessions.map(({ agent, client }) => `${agent} (${client ?? 'unnamed'})`).join(', ')}>
          {plural(sessions.length, 'session')}: {[...new Set(sessions.map(({ agent }) => agent))].join(', ')}
        </span>
      ),
  },
  { key: 'place', title: 'Kept in', width: 'minmax(70px, 0.6fr)', wide: 760, cell: ({ place }) => place },
  {
    key: 'about',
    title: 'About',
    width: 'minmax(60px, 1.6fr)',
    wide: true,
    cell: ({ description }) => <span class="muted">{description}</span>,
  },
];

export function Toolsets() {
  const { rest } = route.value;
  const [isNew, setNew] = useState(false);
  const [filter, setFilter] = useState('');
  const list = useLoad<ToolsetsReport>(
    (signal) => get('toolsets', {}, signal),
    [toolsetChanges.value, catalogChanges.value],
  );
  const words = wordsOf(filter);
  const rows = (list.value?.toolsets ?? []).filter(({ name, description }) =>
    hasWords(`${name} ${description}`.toLowerCase(), words),
  );
  const open = rest[0];
  if (open !== undefined)
    return <Editor key={open} name={open} report={list.value} changed={list.again} close={() => go('toolsets')} />;
  return (
    <div class="view full">
      <div class="head">
        <h1>Toolsets</h1>
        <Filter label="Filter toolsets" value={filter} change={setFilter} />
        <button type="button" class="button primary" onClick={() => setNew(true)}>
          <Icon name="plus" /> New toolset
        </button>
        <span class="sub small">
          {list.value?.equipped ? `All who have not chosen have ${list.value.equipped}.` : ''}
        </span>
      </div>
      {list.error ? <Failure error={list.error} again={list.again} /> : null}
      {list.value?.missing ? (
        <p class="note bad">The toolset {list.value.missing} should be equipped and does not exist.</p>
      ) : null}
      {(list.value?.problems ?? []).map((problem) => (
        <p key={problem} class="note warn">
          {problem}
        </p>
      ))}
      <Table
        label="Toolsets"
        rows={rows}
        columns={COLUMNS}
        id={({ name }) => name}
        open={({ name }) => go('toolsets', name)}
        empty={
          words.length > 0 ? (
            <Empty title="No toolset is like that" />
          ) : (
            <Empty title="No toolsets yet">
              A toolset is a named choice of tools. Make one, and equip it for an agent.
            </Empty>
          )
        }
      />
      {isNew ? <NewToolset close={() => setNew(false)} /> : null}
    </div>
  );
}

function NewToolset({ close }: { close: () => void }) {
  const id = useId();
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [place, setPlace] = useState('project');
  const create = async () => {
    const done = await attempt(async () => {
      await post('commands/toolsets-create', { name, description, tools: [], place });
      return true;
    }, `${name} is made. Now choose its tools.`);
    if (!done) return;
    close();
    go('toolsets', name);
  };
  return (
    <Dialog
      title="New toolset"
      close={close}
      footer={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" form={id} class="button primary" disabled={name.trim() === ''}>
            Make it
          </button>
        </>
      }
    >
      <form
        id={id}
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <div class="field">
          <label for={`${id}-name`}>Name</label>
          <input
            id={`${id}-name`}
            class="input"
            value={name}
            autocomplete="off"
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        <div class="field">
          <label for={`${id}-about`}>What it is for</label>
          <input
            id={`${id}-about`}
            class="input"
            value={description}
            onInput={(event) => setDescription(event.currentTarget.value)}
          />
        </div>
        <div class="field">
          <label for={`${id}-place`}>Kept in</label>
          <select
            id={`${id}-place`}
            class="input"
            value={place}
            onChange={(event) => setPlace(event.currentTarget.value)}
          >
            <option value="project">this project</option>
            <option value="user">my home, for all projects</option>
          </select>
        </div>
      </form>
    </Dialog>
  );
}

interface EditorProperties {
  readonly name: string;
  readonly report: ToolsetsReport | undefined;
  readonly changed: () => void;
  readonly close: () => void;
}

function Editor({ name, report, changed, close }: EditorProperties) {
  const detail = useLoad<ToolsetDetail>(
    (signal) => get(`toolsets/${at(name)}`, {}, signal),
    [name, toolsetChanges.value, catalogChanges.value],
  );
  const [draft, setDraft] = useState<readonly string[] | null>(null);
  const [isEquipping, setEquipping] = useState(false);
  const [filter, setFilter] = useState('');
  const saved = detail.value?.tools ?? [];
  const tools = draft ?? saved;
  const settled = useSettled(tools.join('\n'), 80);
  const choices = useLoad<readonly ToolChoiceRow[]>(
    () => post('commands/toolsets-choices', { chosen: settled === '' ? [] : settled.split('\n') }),
    [settled, catalogChanges.value],
  );
  const editable = detail.value?.editable === true;
  const isChanged = draft !== null && draft.join('\n') !== saved.join('\n');
  const all = choices.value ?? [];
  const chosen = all.filter(({ isChosen }) => isChosen);
  const tokens = chosen.reduce((sum, one) => sum + one.tokens, 0);
  const byPattern = useMemo(() => {
    const names = new Set(all.map((one) => one.name));
    return tools.filter((tool) => !names.has(tool));
  }, [all, tools]);
  const words = wordsOf(filter);
  const matches = ({ name: tool, description }: ToolChoiceRow) =>
    hasWords(`${tool} ${description}`.toLowerCase(), words);
  const add = (tool: string) => setDraft([...tools.filter((one) => one !== tool), tool]);
  const drop = (tool: string) => setDraft(tools.filter((one) => one !== tool));
  const isDirect = (tool: string) => tools.includes(tool);

  const save = async () => {
    const done = await attempt(async () => {
      await post('commands/toolsets-edit', {
        name,
        add: tools.filter((one) => !saved.includes(one)),
        remove: saved.filter((one) => !tools.includes(one)),
      });
      return true;
    }, `${name} is saved.`);
    if (!done) return;
    setDraft(null);
    detail.again();
    changed();
  };
  const erase = async () => {
    const done = await attempt(async () => {
      await post('commands/toolsets-delete', { name });
      return true;
    }, `${name} is deleted.`);
    if (!done) return;
    changed();
    close();
  };
  const [isDeleting, setDeleting] = useState(false);

  return (
    <div class="view full">
      <div class="head">
        <a class="button plain" href="#/toolsets" aria-label="Back to all toolsets">
          ←
        </a>
        <h1 class="wrap">{name}</h1>
        <span class="sub wrap">{detail.value?.description}</span>
        <span class="grow" />
        {report?.canEquip ? (
          <button type="button" class="button" onClick={() => setEquipping(true)}>
            Equip…
          </button>
        ) : null}
        {editable ? (
          <>
            <button type="button" class="button danger" onClick={() => setDeleting(true)}>
              Delete
            </button>
            <button type="button" class="button" disabled={!isChanged} onClick={() => setDraft(null)}>
              Undo
            </button>
            <button type="button" class="button primary" disabled={!isChanged} onClick={() => void save()}>
              Save
            </button>
          </>
        ) : null}
      </div>
      {detail.error ? <Failure error={detail.error} again={detail.again} /> : null}
      {detail.value && !editable ? (
        <p class="note">It is kept in {detail.value.place} and cannot be changed here.</p>
      ) : null}
      <div class="cols">
        <Meter tokens={tokens} count={chosen.length} />
        <Wearers row={detail.value} />
      </div>
      <div class="head">
        <Filter label="Filter tools" value={filter} change={setFilter} placeholder="Filter tools by words" />
        {editable ? <AddPattern add={add} /> : null}
      </div>
      <div class="split lists">
        <ToolList
          title="In this toolset"
          sub={`${plural(chosen.length, 'tool')}, about ${number(tokens)} tokens`}
          rows={chosen.filter(matches)}
          patterns={byPattern}
          dropPattern={editable ? drop : undefined}
          action={editable ? 'Remove' : undefined}
          canAct={({ name: tool }) => isDirect(tool)}
          act={drop}
          empty="No tool is in it. Drag one here, or press Enter on one."
          accept={add}
        />
        <ToolList
          title="Other tools"
          sub={plural(all.length - chosen.length, 'tool')}
          rows={all.filter((one) => !one.isChosen).filter(matches)}
          action={editable ? 'Add' : undefined}
          canAct={() => true}
          act={add}
          empty="Every tool is in it, or none is like that."
          accept={drop}
        />
      </div>
      {isEquipping ? <Equip name={name} close={() => setEquipping(false)} changed={detail.again} /> : null}
      {isDeleting ? (
        <Dialog
          title={`Delete ${name}?`}
          close={() => setDeleting(false)}
          footer={
            <>
              <button type="button" class="button" onClick={() => setDeleting(false)}>
                Keep it
              </button>
              <button type="button" class="button danger" onClick={() => void erase()}>
                Delete it
              </button>
            </>
          }
        >
          <p>Its file is removed. Clients that have it equipped see their usual tools again.</p>
        </Dialog>
      ) : null}
    </div>
  );
}

function Meter({ tokens, count }: { tokens: number; count: number }) {
  const all = overview.value?.catalog.tokens ?? 0;
  const share = all === 0 ? 0 : tokens / all;
  return (
    <Panel title="Cost" sub="what a model pays with every request">
      <div class="meter">
        <div class="line">
          <b class="big">{number(tokens)}</b> tokens for {plural(count, 'tool')}
          <span class="muted">
            of {number(all)} for all ({Math.round(share * 100)} %)
          </span>
        </div>
        <div
          class="track"
          role="meter"
          aria-label="Tokens of this toolset"
          aria-valuemin={0}
          aria-valuemax={Math.max(all, tokens, 1)}
          aria-valuenow={tokens}
        >
          <span
            class={`fill-bar ${tokens > 10_000 ? 'warn' : ''}`}
            style={{ width: `${Math.min(100, share * 100)}%` }}
          />
        </div>
      </div>
    </Panel>
  );
}

function Wearers({ row }: { row: ToolsetDetail | undefined }) {
  const names = row?.sessions ?? [];
  return (
    <Panel title="Equipped by" sub={row?.equipped ? 'all who have not chosen themselves' : ''}>
      {names.length === 0 ? (
        <p class="muted">{row?.equipped ? 'No session has chosen it itself.' : 'No session has it.'}</p>
      ) : (
        <ul class="line">
          {names.slice(0, 20).map(({ id, agent, client }) => (
            <li key={id}>
              <Chip tone="accent" title={client ?? undefined}>
                {agent}
                {client ? ` · ${client}` : ''}
              </Chip>
            </li>
          ))}
          {names.length > 20 ? <li class="muted">and {names.length - 20} more</li> : null}
        </ul>
      )}
    </Panel>
  );
}

function AddPattern({ add }: { add: (pattern: string) => void }) {
  const [pattern, setPattern] = useState('');
  return (
    <form
      class="line"
      onSubmit={(event) => {
        event.preventDefault();
        if (pattern.trim() === '') return;
        add(pattern.trim());
        setPattern('');
      }}
    >
      <input
        class="input pattern"
        aria-label="Add a name or pattern"
        placeholder="pattern, such as files.*"
        autocomplete="off"
        value={pattern}
        onInput={(event) => setPattern(event.currentTarget.value)}
      />
      <button type="submit" class="button" disabled={pattern.trim() === ''}>
        Add pattern
      </button>
    </form>
  );
}

interface ListProperties {
  readonly title: string;
  readonly sub: string;
  readonly rows: readonly ToolChoiceRow[];
  readonly patterns?: readonly string[];
  readonly dropPattern?: ((pattern: string) => void) | undefined;
  readonly action: string | undefined;
  readonly canAct: (row: ToolChoiceRow) => boolean;
  readonly act: (name: string) => void;
  readonly accept: (name: string) => void;
  readonly empty: string;
}

const TYPE = 'application/x-toolgate-tool';

function ToolList({
  title,
  sub,
  rows,
  patterns = [],
  dropPattern,
  action,
  canAct,
  act,
  accept,
  empty,
}: ListProperties) {
  const [isOver, setOver] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  // The list itself is the place to drop on. Rows say what is dragged.
  useEffect(() => {
    const element = box.current;
    if (!element || action === undefined) return;
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes(TYPE)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = () => setOver(false);
    const drop = (event: DragEvent) => {
      setOver(false);
      const [from, name] = (event.dataTransfer?.getData(TYPE) ?? '').split('\n');
      if (!name || from === title) return;
      event.preventDefault();
      accept(name);
    };
    element.addEventListener('dragover', over);
    element.addEventListener('dragleave', leave);
    element.addEventListener('drop', drop);
    return () => {
      element.removeEventListener('dragover', over);
      element.removeEventListener('dragleave', leave);
      element.removeEventListener('drop', drop);
    };
  });
  const columns: readonly Column<ToolChoiceRow>[] = [
    {
      key: 'name',
      title: 'Tool',
      width: 'minmax(120px, 1.4fr)',
      cell: (row) => (
        <span
          class="drag"
          draggable={action !== undefined && canAct(row)}
          title={row.name}
          onDragStart={(event) => event.dataTransfer?.setData(TYPE, `${title}\n${row.name}`)}
        >
          <b>{row.name}</b>
        </span>
      ),
    },
    {
      key: 'about',
      title: 'About',
      width: 'minmax(0, 1.4fr)',
      wide: true,
      cell: ({ description }) => (
        <span class="muted" title={description}>
          {description}
        </span>
      ),
    },
    { key: 'tokens', title: 'Tokens', width: '60px', right: true, cell: ({ tokens }) => number(tokens) },
    ...(action
      ? [
          {
            key: 'act',
            title: 'Change',
            width: '76px',
            right: true,
            cell: (row: ToolChoiceRow) =>
              canAct(row) ? (
                <button
                  type="button"
                  class="button tiny"
                  tabIndex={-1}
                  aria-label={`${action} ${row.name}`}
                  onClick={() => act(row.name)}
                >
                  {action}
                </button>
              ) : (
                <span class="muted small">by pattern</span>
              ),
          },
        ]
      : []),
  ];
  return (
    <div class={`panel drop ${isOver ? 'over' : ''}`} ref={box}>
      <header>
        <h2>{title}</h2>
        <span class="sub">{sub}</span>
      </header>
      {patterns.length > 0 ? (
        <ul class="line patterns" aria-label="Patterns and names that no server has">
          {patterns.map((pattern) => (
            <li key={pattern}>
              <span class="chip accent">
                <code>{pattern}</code>
                {dropPattern ? (
                  <button
                    type="button"
                    class="chip-button"
                    aria-label={`Remove ${pattern}`}
                    onClick={() => dropPattern(pattern)}
                  >
                    ×
                  </button>
                ) : null}
              </span>
            </li>
          ))}
        </ul>
      ) : null}
      <Table
        label={title}
        rows={rows}
        columns={columns}
        id={({ name }) => name}
        height={384}
        open={(row) => {
          if (action && canAct(row)) act(row.name);
        }}
        empty={<span>{empty}</span>}
      />
    </div>
  );
}

function Equip({ name, close, changed }: { name: string; close: () => void; changed: () => void }) {
  const id = useId();
  const [who, setWho] = useState('all');
  const people = useLoad<SessionPage>((signal) => get('sessions', { limit: 200 }, signal), []);
  const equip = async () => {
    const [kind, value] = who.split('\n');
    const done = await attempt(async () => {
      await post('commands/toolsets-equip', {
        name,
        who: kind === 'agent' ? { agent: value } : kind === 'session' ? { session: value } : 'all',
      });
      return true;
    }, `${name} is equipped.`);
    if (!done) return;
    changed();
    close();
  };
  return (
    <Dialog
      title={`Equip ${name}`}
      close={close}
      footer={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="button" class="button primary" onClick={() => void equip()}>
            Equip
          </button>
        </>
      }
    >
      <div class="field">
        <label for={id}>For whom</label>
        <select id={id} class="input" value={who} onChange={(event) => setWho(event.currentTarget.value)}>
          <option value="all">all who have not chosen themselves</option>
          <optgroup label="Agents">
            {agents.value.map((agent) => (
              <option key={agent} value={`agent\n${agent}`}>
                {agent}
              </option>
            ))}
          </optgroup>
          <optgroup label="Sessions">
            {(people.value?.sessions ?? []).map((row) => (
              <option key={row.id} value={`session\n${row.id}`}>
                {row.agent} · {row.client ?? 'unnamed'} · {row.id}
              </option>
            ))}
          </optgroup>
        </select>
      </div>
      <p class="muted">Clients are told that their list has changed.</p>
    </Dialog>
  );
}
