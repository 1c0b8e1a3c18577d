/**
 * A table of any length: only the rows in sight exist. All rows have one height, so that ten thousand of them cost what
 * thirty cost. Arrows, Home, End and the page keys move, Enter opens.
 */
import { Component, type ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { narrow } from '../narrow.ts';

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  /** As in `grid-template-columns`. */
  readonly width: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** What the row is sorted by, if the column can be sorted. */
  readonly sort?: (row: Row) => string | number;
  readonly right?: boolean;
  /** Only if the table has room: at least so many pixels, or more than a phone has. */
  readonly wide?: boolean | number;
}

interface Properties<Row> {
  readonly label: string;
  /** What is not there yet is undefined; `range` says which rows are in sight, so that they can be asked for. */
  readonly rows: readonly (Row | undefined)[];
  readonly range?: (from: number, until: number) => void;
  readonly columns: readonly Column<Row>[];
  readonly id: (row: Row) => string;
  readonly open?: (row: Row) => void;
  readonly selected?: string | null;
  readonly tone?: (row: Row) => string;
  /** What stands there if there are no rows. */
  readonly empty: ComponentChildren;
  /** At most so high; without it the table takes the place that there is. */
  readonly height?: number;
  readonly sorted?: string;
}

const ROW = 32;
const MORE = 6;
/** A table that is less wide than this shows its first columns only. */
const ROOM = 560;

function hasRoom<Row>({ wide = false }: Column<Row>, width: number): boolean {
  return wide === false || width >= (wide === true ? ROOM : wide);
}

export function Table<Row>({
  label,
  rows,
  columns,
  id,
  open,
  selected,
  tone,
  empty,
  height,
  sorted,
  range,
}: Properties<Row>) {
  const frame = useRef<HTMLDivElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(narrow.peek() ? 0 : 1_000);
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(640);
  const [order, setOrder] = useState<{ key: string; down: boolean } | null>(
    sorted ? { key: sorted, down: false } : null,
  );
  const [active, setActive] = useState<Active | null>(null);
  const wantsFocus = useRef(false);
  /** Where the last key went. The focus follows when the row is drawn, and the next key may come before. */
  const going = useRef(0);

  const keys = columns
    .filter((column) => hasRoom(column, width))
    .map(({ key }) => key)
    .join('\n');
  const shown = useMemo(() => columns.filter((column) => hasRoom(column, width)), [columns, keys]);
  const grid = shown.map((column) => column.width).join(' ');
  const ordered = useMemo(() => {
    const by = order && columns.find(({ key }) => key === order.key)?.sort;
    if (!by) return rows;
    const sign = order.down ? -1 : 1;
    return (rows as readonly Row[]).toSorted((a, b) => {
      const left = by(a);
      const right = by(b);
      return left < right ? -sign : left > right ? sign : 0;
    });
  }, [rows, order, columns]);

  // Before the first paint, so that no column comes and goes.
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setSeen(element.clientHeight));
    watch.observe(element);
    return () => watch.disconnect();
  }, [rows.length === 0]);

  // A shorter list is scrolled up by the browser, which says so only later.
  const most = Math.max(0, ordered.length * ROW - seen);
  const from = Math.max(0, Math.floor(Math.min(top, most) / ROW) - MORE);
  const until = Math.min(ordered.length, Math.ceil((Math.min(top, most) + seen) / ROW) + MORE);
  const at = useMemo(() => findActive(ordered, active, id), [ordered, active]);
  const tabStop = at >= from && at < until ? at : from;

  /** Whether a row has the focus. The browser says nothing if that row is taken out of the page. */
  const hasFocus = useRef(false);

  useEffect(() => {
    // The row with the focus is not in the list any more. The next one gets it, so that keys still work.
    if (hasFocus.current && document.activeElement === document.body && ordered.length > 0)
      box.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
    // The row that the last key went to has left the list before it was drawn.
    if (wantsFocus.current && active !== null && at < 0) wantsFocus.current = false;
    // A row that was not there yet has come, and took the place of the one that had the focus.
    if (active?.key === null && ordered[active.index] !== undefined) {
      setActive({ index: active.index, key: id(ordered[active.index] as Row) });
      if (document.activeElement === document.body) {
        wantsFocus.current = true;
        going.current = active.index;
      }
    }
    if (!wantsFocus.current || at < 0 || at !== going.current) return;
    wantsFocus.current = false;
    box.current?.querySelector<HTMLElement>(`[aria-rowindex="${at + 2}"]`)?.focus({ preventScroll: true });
  });

  useEffect(() => range?.(from, until), [range, from, until]);

  function move(next: number) {
    const index = Math.max(0, Math.min(ordered.length - 1, next));
    const row = ordered[index];
    const element = box.current;
    if (!element) return;
    wantsFocus.current = true;
    going.current = index;
    setActive({ index, key: row === undefined ? null : id(row) });
    if (index * ROW < element.scrollTop) element.scrollTop = index * ROW;
    else if ((index + 1) * ROW > element.scrollTop + element.clientHeight)
      element.scrollTop = (index + 1) * ROW - element.clientHeight;
    setTop(element.scrollTop);
  }

  /** The row that an event is about. */
  function rowOf(event: Event): { index: number; row: Row | undefined } | null {
    const target = event.target as HTMLElement;
    const element = target.closest<HTMLElement>('[aria-rowindex]');
    // Buttons inside of a row are there for themselves.
    if (!element || target.closest('button, input, select, a')) return null;
    const index = Number(element.getAttribute('aria-rowindex')) - 2;
    return { index, row: ordered[index] };
  }

  function onClick(event: MouseEvent) {
    const found = rowOf(event);
    if (!found?.row) return;
    setActive({ index: found.index, key: id(found.row) });
    open?.(found.row);
  }

  function onFocus(event: FocusEvent) {
    hasFocus.current = true;
    wantsFocus.current = false;
    const found = rowOf(event);
    if (found && found.index !== at)
      setActive({ index: found.index, key: found.row === undefined ? null : id(found.row) });
  }

  function onKey(event: KeyboardEvent) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const found = rowOf(event);
    if (!found) return;
    const index = wantsFocus.current ? Math.min(going.current, ordered.length - 1) : found.index;
    const page = Math.max(1, Math.floor(seen / ROW) - 1);
    const steps: Record<string, number> = {
      ArrowDown: index + 1,
      ArrowUp: index - 1,
      PageDown: index + page,
      PageUp: index - page,
      Home: 0,
      End: ordered.length - 1,
    };
    const next = steps[event.key];
    if (next !== undefined) {
      event.preventDefault();
      move(next);
    } else if ((event.key === 'Enter' || event.key === ' ') && open && ordered[index] !== undefined) {
      event.preventDefault();
      open(ordered[index]);
    }
  }

  const sortBy = (key: string) =>
    setOrder((old) => (old?.key === key ? { key, down: !old.down } : { key, down: false }));
  const cellClass = (column: Column<Row>) => (column.right ? 'num' : undefined);
  return (
    <div
      ref={frame}
      class={`table${height === undefined ? ' fill' : ''}`}
      role="grid"
      aria-label={label}
      aria-rowcount={ordered.length + 1}
      aria-colcount={shown.length}
    >
      <div class="tr th" role="row" aria-rowindex={1} style={{ gridTemplateColumns: grid }}>
        {shown.map((column) => (
          <div
            key={column.key}
            role="columnheader"
            class={cellClass(column)}
            aria-sort={order?.key === column.key ? (order.down ? 'descending' : 'ascending') : undefined}
          >
            {column.sort ? (
              <button type="button" onClick={() => sortBy(column.key)}>
                {column.title}
                {order?.key === column.key ? (order.down ? ' ↓' : ' ↑') : ''}
              </button>
            ) : (
              column.title
            )}
          </div>
        ))}
      </div>
      {ordered.length === 0 ? (
        <div role="row" tabIndex={-1}>
          <div role="gridcell" class="empty">
            {empty}
          </div>
        </div>
      ) : (
        <div
          class="rows"
          role="rowgroup"
          ref={box}
          onScroll={(event) => {
            const { scrollTop } = event.currentTarget;
            // Only a new first row changes what is drawn.
            if (Math.floor(scrollTop / ROW) !== Math.floor(top / ROW)) setTop(scrollTop);
          }}
          onKeyDown={onKey}
          onClick={onClick}
          onFocusCapture={onFocus}
          onBlurCapture={() => {
            hasFocus.current = false;
          }}
          style={{ height: height === undefined ? undefined : `${Math.min(height, ordered.length * ROW)}px` }}
        >
          <div role="presentation" style={{ height: `${ordered.length * ROW}px` }} />
          {ordered.slice(from, until).map((row, offset) => {
            const index = from + offset;
            const key = row === undefined ? `hole-${index}` : id(row);
            return (
              <TableRow
                key={key}
                row={row}
                index={index}
                columns={shown}
                grid={grid}
                tone={row === undefined ? '' : (tone?.(row) ?? '')}
                isSelected={selected === undefined ? undefined : selected === key}
                isTabStop={index === tabStop}
              />
            );
          })}
        </div>
      )}
    </div>
  );
}

interface Active {
  readonly index: number;
  /** Null if the row is not there yet. */
  readonly key: string | null;
}

function findActive<Row>(rows: readonly (Row | undefined)[], active: Active | null, id: (row: Row) => string): number {
  if (active === null) return -1;
  const there = rows[active.index];
  if (active.key === null || (there !== undefined && id(there) === active.key))
    return active.index < rows.length ? active.index : -1;
  return rows.findIndex((row) => row !== undefined && id(row) === active.key);
}

interface RowProperties<Row> {
  readonly row: Row | undefined;
  readonly index: number;
  readonly columns: readonly Column<Row>[];
  readonly grid: string;
  readonly tone: string;
  readonly isSelected: boolean | undefined;
  readonly isTabStop: boolean;
}

/** Drawn again only if something of it is another: scrolling and new rows touch what comes into sight. */
class TableRow<Row> extends Component<RowProperties<Row>> {
  override shouldComponentUpdate(next: RowProperties<Row>): boolean {
    const now = this.props;
    return (Object.keys(next) as (keyof RowProperties<Row>)[]).some((key) => next[key] !== now[key]);
  }

  override render() {
    const { row, index, columns, grid, tone, isSelected, isTabStop } = this.props;
    return (
      <div
        class={`tr ${tone}`}
        role="row"
        aria-rowindex={index + 2}
        aria-selected={isSelected}
        tabIndex={isTabStop ? 0 : -1}
        style={{ top: `${index * ROW}px`, gridTemplateColumns: grid }}
      >
        {row === undefined ? (
          <div role="gridcell" class="muted" aria-label="Loading">
            …
          </div>
        ) : (
          columns.map((column) => (
            <div key={column.key} role="gridcell" class={column.right ? 'num' : undefined}>
              {column.cell(row)}
            </div>
          ))
        )}
      </div>
    );
  }
}
