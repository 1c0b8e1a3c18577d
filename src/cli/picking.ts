/** Picking from a long list: what is typed narrows it, space marks, enter is the end. Pure; `pick.ts` has the terminal. */

export interface Choice {
  readonly value: string;
  readonly text: string;
  /** What it costs the model to know of it. */
  readonly tokens: number;
}

export interface Picking {
  readonly query: string;
  /** The line that is pointed at, among those shown. */
  readonly at: number;
  readonly chosen: ReadonlySet<string>;
}

export interface Key {
  readonly name?: string | undefined;
  readonly sequence?: string | undefined;
  readonly ctrl?: boolean | undefined;
}

/** Those with everything in them that was typed. */
export function shownChoices(choices: readonly Choice[], query: string): readonly Choice[] {
  const wanted = query.toLowerCase();
  return choices.filter(({ value, text }) => `${value} ${text}`.toLowerCase().includes(wanted));
}

export function press(picking: Picking, choices: readonly Choice[], { name, sequence = '', ctrl }: Key): Picking {
  const shown = shownChoices(choices, picking.query);
  switch (name) {
    case 'up':
      return { ...picking, at: Math.max(0, picking.at - 1) };
    case 'down':
      return { ...picking, at: Math.max(0, Math.min(shown.length - 1, picking.at + 1)) };
    case 'space':
      return { ...picking, chosen: toggle(picking.chosen, shown[picking.at]?.value) };
    case 'backspace':
      return { ...picking, query: picking.query.slice(0, -1), at: 0 };
    default: {
      const isText = ctrl !== true && /^[\x21-\x7e]$/.test(sequence);
      return isText ? { ...picking, query: picking.query + sequence, at: 0 } : picking;
    }
  }
}

function toggle(chosen: ReadonlySet<string>, value: string | undefined): ReadonlySet<string> {
  if (value === undefined) return chosen;
  const next = new Set(chosen);
  if (!next.delete(value)) next.add(value);
  return next;
}

/** The lines to show, none longer than the terminal is wide. */
export function draw(
  { query, at, chosen }: Picking,
  choices: readonly Choice[],
  rows: number,
  columns: number,
): string[] {
  const shown = shownChoices(choices, query);
  const room = Math.max(3, rows - 4);
  const first = Math.max(0, Math.min(at - Math.floor(room / 2), shown.length - room));
  const width = Math.max(0, ...shown.map(({ value }) => value.length));
  const lines = shown.slice(first, first + room).map(({ value, text, tokens }, index) => {
    const pointer = first + index === at ? '>' : ' ';
    const mark = chosen.has(value) ? '[x]' : '[ ]';
    return `${pointer} ${mark} ${value.padEnd(width)} ${`${tokens}`.padStart(6)}  ${text}`;
  });
  const spent = choices.filter(({ value }) => chosen.has(value)).reduce((sum, { tokens }) => sum + tokens, 0);
  return [
    `Search: ${query}_  (${shown.length} of ${choices.length})`,
    ...(lines.length === 0 ? ['  nothing has that in it'] : lines),
    `${chosen.size} chosen, about ${spent} tokens`,
    'Type to search, space marks, enter saves, escape leaves.',
  ].map((line) => line.slice(0, columns - 1));
}
