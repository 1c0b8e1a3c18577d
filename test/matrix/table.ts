/** The tables of docs/protocol.md, from the same values that the checks use. */
import { cellsOf, type Feature, features, verdictOn } from './features.ts';
import { type Cell, ERAS, revisions, type Side, TRANSPORTS, transportNames, whyNoSide } from './sides.ts';

/** The notes below a table, without duplicates. */
function createNotes() {
  const notes: string[] = [];
  return {
    mark(note: string): string {
      if (!notes.includes(note)) notes.push(note);
      return `[^${notes.indexOf(note) + 1}]`;
    },
    render: () => notes.map((note, index) => `[^${index + 1}]: ${note}`),
  };
}

function renderRows(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
}

/** Revisions and transports. */
export function renderSides(): string {
  const rows = ERAS.map((era) => {
    const cells = TRANSPORTS.map((transport) => whyNoSide({ era, transport }) ?? 'yes');
    return [era, revisions[era].join(', '), ...cells];
  });
  return renderRows(['', 'revisions', ...TRANSPORTS.map((transport) => transportNames[transport])], rows).join('\n');
}

const PAIRS = ERAS.flatMap((client) => ERAS.map((upstream) => ({ client, upstream })));

/** Rows are features, columns are pairs of eras. Notes below say what is impossible, everywhere or in some cells. */
export function renderFeatures(): string {
  const notes = createNotes();
  const rows = features.map((feature) => [
    feature.name,
    ...PAIRS.map(({ client, upstream }) => renderCell(feature, cellsOf(client, upstream), notes.mark)),
  ]);
  const head = ['client → server', ...PAIRS.map(({ client, upstream }) => `${client} → ${upstream}`)];
  return [...renderRows(head, rows), '', ...notes.render()].join('\n');
}

function renderCell(feature: Feature, cells: readonly Cell[], mark: (note: string) => string): string {
  const verdicts = cells.map((cell) => ({ cell, verdict: verdictOn(feature, cell) }));
  const exceptions = new Map<string, Cell[]>();
  for (const { cell, verdict } of verdicts)
    if (verdict.kind !== 'yes') exceptions.set(verdict.reason, [...(exceptions.get(verdict.reason) ?? []), cell]);
  const marks = [...exceptions].map(([reason, where]) => {
    const note = where.length === cells.length ? reason : `Not for ${describeCells(where, cells)}. ${reason}`;
    return mark(note);
  });
  const found = (kind: string) => verdicts.some(({ verdict }) => verdict.kind === kind);
  return (found('yes') ? 'yes' : found('not yet') ? 'not yet' : 'no') + marks.join('');
}

/** Names a group of cells by client, by server, or by both. */
function describeCells(some: readonly Cell[], all: readonly Cell[]): string {
  const names = (side: keyof Cell, cells: readonly Cell[]) => [...new Set(cells.map((cell) => nameOf(cell[side])))];
  const [clients, servers] = [names('client', some), names('upstream', some)];
  const ofClients = `clients over ${clients.join(', ')}`;
  if (servers.length === names('upstream', all).length) return ofClients;
  const ofServers = `servers over ${servers.join(', ')}`;
  return clients.length === names('client', all).length ? ofServers : `${ofClients} with ${ofServers}`;
}

function nameOf({ transport }: Side): string {
  return transportNames[transport];
}
