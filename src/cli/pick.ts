/** A picker on the terminal. */
import { emitKeypressEvents } from 'node:readline';
import { type Choice, draw, type Key, type Picking, press } from './picking.ts';
import { plain } from './terminal.ts';

/** Whether there is a person who could pick. */
export function canPick(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** What was chosen, in the order of the list; null where the person left. */
export function pick(choices: readonly Choice[], chosen: Iterable<string>): Promise<string[] | null> {
  const { stdin, stderr } = process;
  let picking: Picking = { query: '', at: 0, chosen: new Set(chosen) };
  let height = 0;
  const clear = () => stderr.write(height === 0 ? '' : `\x1b[${height}A\x1b[J`);
  const show = () => {
    clear();
    const lines = draw(picking, choices, stderr.rows || 24, stderr.columns || 80).map(plain);
    height = lines.length;
    stderr.write(`${lines.join('\n')}\n`);
  };
  emitKeypressEvents(stdin);
  stdin.setRawMode(true);
  stdin.resume();
  show();
  return new Promise((resolve) => {
    const end = (result: string[] | null) => {
      stdin.off('keypress', onKey);
      stdin.setRawMode(false);
      stdin.pause();
      clear();
      resolve(result);
    };
    const onKey = (_: unknown, key: Key) => {
      if (key.name === 'return') end(choices.map(({ value }) => value).filter((value) => picking.chosen.has(value)));
      else if (key.name === 'escape' || (key.ctrl === true && key.name === 'c')) end(null);
      else {
        picking = press(picking, choices, key);
        show();
      }
    };
    stdin.on('keypress', onKey);
  });
}
