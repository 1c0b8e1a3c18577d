import { expect, it } from 'vitest';
import { StateHistory } from './state.ts';
import { StderrTail } from './stderr-tail.ts';

function createHistory() {
  const events: string[] = [];
  const history = new StateHistory(
    {
      events: {
        emit: (_, event) =>
          events.push(`${(event as { state: string }).state}: ${(event as { detail: string }).detail}`),
      },
      redact: (text) => text,
      changed() {},
    },
    () => 'a',
    new StderrTail(),
  );
  return { history, events };
}

it('a lasting failure is reported once, until something else happens', () => {
  const { history, events } = createHistory();
  for (let i = 0; i < 3; i++) history.enter('down', 'no such package', true);
  history.enter('down', 'no network', true);
  history.enter('down', 'no network', true);
  history.enter('up', 'a');
  history.enter('down', 'no network', true);
  expect(events).toEqual(['down: no such package', 'down: no network', 'up: a', 'down: no network']);
});
