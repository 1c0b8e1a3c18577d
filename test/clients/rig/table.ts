/** The table of docs/clients.md. */
import type { Measurement, Passed } from './measure.ts';
import { type Published, versionOf } from './published.ts';
import { readResult } from './results.ts';

const HEAD = [
  'client',
  'version',
  'HTTP',
  'stdio',
  'descriptions',
  'instructions',
  'lists tools',
  'sees what it activated',
  'resources',
];

export function renderClients(clients: readonly Published[]): string {
  const rows = clients.map((client) => {
    const { http, stdio } = readResult(client)!;
    const one = (stdio ?? http)!;
    return [
      client.title,
      versionOf(client),
      reached(http),
      reached(stdio),
      passed(one.description),
      passed(one.instructions),
      one.lists,
      [http, stdio].some((each) => each?.shownIn)
        ? 'yes'
        : one.lists === 'when the program says so'
          ? 'when it lists'
          : 'no',
      one.resources === null ? '–' : one.resources ? '✓' : '✗',
    ];
  });
  return [HEAD, HEAD.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Whether the memory tool was called, in which request to the model, and through what. */
function reached(measured: Measurement | undefined): string {
  if (measured === undefined) return '–';
  const { through, calledIn } = measured;
  if (through === null) return '✗';
  const words = ['✓', ...(calledIn === null ? [] : [String(calledIn)])];
  return through === 'toolman_call' ? `${words.join(' ')}, \`toolman_call\`` : words.join(' ');
}

function passed(text: Passed): string {
  return typeof text === 'number' ? text.toLocaleString('en') : text;
}
