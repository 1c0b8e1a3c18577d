// Prints rows as a table.

const value = (name) => ({ title: name, cell: (row) => format(row.values[name], row.unit) });
const quotient = (title, of) => ({ title, cell: (row) => times(of(row)) });
const JUDGEMENT = [
  { title: 'limit', cell: ({ limit }) => limit?.text ?? '', words: true },
  { title: '', cell: judged, words: true },
];

/** The columns of a scenario, or the default ones. */
const COLUMNS = {
  usual: [
    ...['direct', 'bare', 'toolgate', 'sdk'].map(value),
    quotient('toolgate/bare', ({ ratios }) => ratios?.toolgate),
    quotient('sdk/bare', ({ ratios }) => ratios?.sdk),
    ...JUDGEMENT,
  ],
  http: [
    ...['direct', 'node', 'bare', 'toolgate', 'sdk'].map(value),
    quotient('toolgate/bare', ({ ratios }) => ratios?.toolgate),
    quotient('toolgate/node', ({ ofNode }) => ofNode),
    ...JUDGEMENT,
  ],
  eras: [
    ...['bare', 'toolgate'].map(value),
    quotient('toolgate/bare', ({ ratios }) => ratios.toolgate),
    quotient('bare: of legacy', ({ ofLegacy }) => ofLegacy.bare),
    quotient('toolgate: of legacy', ({ ofLegacy }) => ofLegacy.toolgate),
    ...JUDGEMENT,
  ],
  rest: [value('toolgate'), quotient('of MCP', ({ ofMcp }) => ofMcp), ...JUDGEMENT],
  dock: [...['stdio', 'worker'].map(value), quotient('worker/stdio', ({ ratios }) => ratios.worker), ...JUDGEMENT],
  library: [value('toolgate'), quotient('of fewer', ({ ofPlain }) => ofPlain), ...JUDGEMENT],
  window: [...['own', 'window'].map(value), quotient('window/own', ({ ofPlain }) => ofPlain), ...JUDGEMENT],
  governed: [value('toolgate'), quotient('of without', ({ ofPlain }) => ofPlain), ...JUDGEMENT],
};

/** `ok`, `miss`, or not measured. */
export function verdict({ limit }) {
  if (!limit) return '';
  if (limit.measured === undefined) return 'not measured';
  const { measured, min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = limit;
  return measured >= min && measured <= max ? 'ok' : 'miss';
}

export function formatTable(scenarios) {
  const lines = [];
  for (const { title, columns: kind = 'usual', rows } of scenarios) {
    const columns = [{ title, cell: ({ label }) => label, words: true }, ...COLUMNS[kind]];
    const cells = rows.map((row) => columns.map(({ cell }) => cell(row)));
    const widths = columns.map((_, column) => Math.max(...cells.map((line) => line[column].length), 8));
    widths[0] = Math.max(58, widths[0]);
    for (const line of [columns.map((column) => column.title), ...cells])
      lines.push(
        line
          .map((cell, column) => pad(cell, widths[column], columns[column].words))
          .join('  ')
          .trimEnd(),
      );
    lines.push('');
  }
  return lines.join('\n');
}

/** Aligns words to the left and numbers to the right. */
function pad(cell, width, words = false) {
  return words ? cell.padEnd(width) : cell.padStart(width);
}

/** Includes the judged value if no other column shows it. */
function judged(row) {
  const word = verdict(row);
  if (word !== 'ok' && word !== 'miss') return word;
  const { measured, unit } = row.limit;
  if (unit === 'ms') return `${word} (+${format(measured, 'ms')})`;
  const shown = [row.ratios?.toolgate, row.ratios?.worker, row.ofLegacy?.toolgate, row.ofPlain].includes(measured);
  return unit || shown ? word : `${word} (${times(measured)})`;
}

const times = (value) => (value === undefined ? '' : `${value.toFixed(2)} x`);

function format(value, unit) {
  if (value === undefined) return '';
  switch (unit) {
    case 'us':
      return value < 1000
        ? `${value.toFixed(value < 100 ? 1 : 0)} us`
        : `${(value / 1000).toFixed(value < 10_000 ? 2 : 1)} ms`;
    case 'ms':
      return `${value.toFixed(0)} ms`;
    case 'B':
      return Math.abs(value) < 1e6 ? `${(value / 1000).toFixed(1)} KB` : `${(value / 1e6).toFixed(0)} MB`;
    case '/s':
      return Math.round(value).toLocaleString('en-US');
    default:
      throw new Error(`No format for ${unit}`);
  }
}
