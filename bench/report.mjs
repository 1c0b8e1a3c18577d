// Rows as a table for people.

const CONTENDERS = ['direct', 'bare', 'toolgate', 'sdk'];
const COLUMNS = [...CONTENDERS, 'toolgate/bare', 'sdk/bare', 'limit', ''];

/** ok, miss, or not measured. */
export function verdict({ limit }) {
  if (!limit) return '';
  if (limit.measured === undefined) return 'not measured';
  return limit.measured <= limit.max ? 'ok' : 'miss';
}

export function formatTable(scenarios) {
  const lines = [];
  for (const { title, rows } of scenarios) {
    const cells = rows.map((row) => [
      row.label,
      ...CONTENDERS.map((name) => format(row.values[name], row.unit)),
      times(row.ratios?.toolgate),
      times(row.ratios?.sdk),
      row.limit?.text ?? '',
      judged(row),
    ]);
    const table = [[title, ...COLUMNS], ...cells];
    const widths = table[0].map((_, column) => Math.max(...table.slice(1).map((line) => line[column].length), 8));
    widths[0] = 58;
    for (const line of table)
      lines.push(
        line
          .map((cell, column) => pad(cell, widths[column], column))
          .join('  ')
          .trimEnd(),
      );
    lines.push('');
  }
  return lines.join('\n');
}

/** Words to the left, numbers to the right. */
function pad(cell, width, column) {
  return column === 0 || column > CONTENDERS.length + 2 ? cell.padEnd(width) : cell.padStart(width);
}

/** With what was judged, where no other column shows it. */
function judged(row) {
  const word = verdict(row);
  if (word !== 'ok' && word !== 'miss') return word;
  const { measured, unit } = row.limit;
  if (unit === 'ms') return `${word} (+${format(measured, 'ms')})`;
  return unit || measured === row.ratios?.toolgate ? word : `${word} (${times(measured)})`;
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
