/** A prompt to pick from a long list: typing narrows the list, space marks, enter ends. */
import { createPrompt, isEnterKey, useKeypress, usePagination, useState } from '@inquirer/core';
import { plain } from './terminal.ts';

export interface Choice {
  readonly value: string;
  readonly text: string;
  /** How many tokens its definition costs a model. */
  readonly tokens: number;
}

export interface Picking {
  readonly query: string;
  /** The index of the current line, among those shown. */
  readonly current: number;
  readonly chosen: ReadonlySet<string>;
}

interface PickConfig {
  readonly choices: readonly Choice[];
  readonly chosen: readonly string[];
  /** The size of the terminal. */
  readonly rows: number;
  readonly columns: number;
}

/** Returns what was chosen, in the order of the list; null if the person left with escape. */
export const pickPrompt = createPrompt<string[] | null, PickConfig>((config, done) => {
  const { choices, rows, columns } = config;
  const cut = (line: string) => line.slice(0, columns - 1);
  const [picking, setPicking] = useState<Picking>({ query: '', current: 0, chosen: new Set(config.chosen) });
  useKeypress((key, readline) => {
    // The line holds only what this key typed, because it is cleared each time.
    const typed = readline.line.trim();
    readline.clearLine(0);
    if (isEnterKey(key)) done(choices.map(({ value }) => value).filter((value) => picking.chosen.has(value)));
    else if (key.name === 'escape') done(null);
    else setPicking(press(picking, choices, key.name, typed));
  });
  const shown = shownChoices(choices, picking.query);
  const width = Math.max(0, ...shown.map(({ value }) => value.length));
  const page = usePagination({
    items: shown,
    active: picking.current,
    // One line above the list, two below it, and one for the shell's prompt.
    pageSize: Math.max(3, rows - 4),
    loop: false,
    renderItem: ({ item: { value, text, tokens }, isActive }) => {
      const mark = picking.chosen.has(value) ? '[x]' : '[ ]';
      const line = `${isActive ? '>' : ' '} ${mark} ${value.padEnd(width)} ${`${tokens}`.padStart(6)}  ${text}`;
      return cut(plain(line));
    },
  });
  const spent = choices.filter(({ value }) => picking.chosen.has(value)).reduce((sum, { tokens }) => sum + tokens, 0);
  return [
    plain(`Search (${shown.length} of ${choices.length}): ${picking.query}`),
    [
      shown.length === 0 ? '  no match' : page,
      cut(`${picking.chosen.size} chosen, about ${spent} tokens`),
      cut('Type to search, space marks, enter saves, escape leaves.'),
    ].join('\n'),
  ];
});

/** The choices that contain what was typed. */
export function shownChoices(choices: readonly Choice[], query: string): readonly Choice[] {
  const wanted = query.toLowerCase();
  return choices.filter(({ value, text }) => `${value} ${text}`.toLowerCase().includes(wanted));
}

/** The next state. `typed` is the text of the key. */
export function press(picking: Picking, choices: readonly Choice[], key: string, typed: string): Picking {
  const shown = shownChoices(choices, picking.query);
  switch (key) {
    case 'up':
      return { ...picking, current: Math.max(0, picking.current - 1) };
    case 'down':
      return { ...picking, current: Math.max(0, Math.min(shown.length - 1, picking.current + 1)) };
    case 'space':
      return { ...picking, chosen: toggle(picking.chosen, shown[picking.current]?.value) };
    case 'backspace':
      return { ...picking, query: picking.query.slice(0, -1), current: 0 };
    default:
      return typed === '' ? picking : { ...picking, query: picking.query + typed, current: 0 };
  }
}

function toggle(chosen: ReadonlySet<string>, value: string | undefined): ReadonlySet<string> {
  if (value === undefined) return chosen;
  const next = new Set(chosen);
  if (!next.delete(value)) next.add(value);
  return next;
}
