// docs/benchmark.md and its plot, from the results of a run. Text in, text out.

import { median, ratio } from '../measure.mjs';
import { PATHS } from './plan.mjs';

const OWN_TITLES = {
  direct: 'no gateway',
  bare: 'bare proxy',
  toolgate: 'Toolgate',
  governed: 'Toolgate with policy, limits and audit',
};
const OWN_ABOUT = {
  direct: 'the client talks to the server itself',
  bare: 'written by hand for this measurement, with `node:http` and undici: passes bytes on and checks nothing. Everything is compared with it',
  toolgate: '`toolgate serve` with one server: sessions, names, schemas, metrics, both eras',
  governed: 'the same with rules for agents, a rate, a daily count, a concurrency and a written record of each call',
};

/** `peers` has the title and text of each peer, by name. */
export function titleOf(name, peers) {
  return OWN_TITLES[name] ?? peers[name].title;
}

/** Ratios of CPU per call to the bare proxy: `{ path: { run: { name: ratio } } }`. */
export function ratiosOf(results) {
  return Object.fromEntries(
    Object.entries(results.paths).map(([path, { runs }]) => [
      path,
      Object.fromEntries(
        Object.entries(runs).map(([run, { samples }]) => [
          run,
          Object.fromEntries(Object.keys(samples).map((name) => [name, ratio(samples[name], samples.bare, 'cpu')])),
        ]),
      ),
    ]),
  );
}

/** How many rounds there were: fewer than planned if the time was up. */
function roundsIn({ paths }) {
  const counts = Object.values(paths).flatMap(({ runs }) =>
    Object.values(runs).map(({ samples }) => (samples.bare ?? []).filter(Boolean).length),
  );
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return least === most ? String(most) : `${least} to ${most}`;
}

const times = (value) =>
  value === undefined || Number.isNaN(value) ? '–' : value < 9.95 ? value.toFixed(2) : value.toFixed(0);

function table(heads, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(heads), line(heads.map((_, i) => (i === 0 ? '---' : '--:'))), ...rows.map(line)].join('\n');
}

/** The page. `results` is what run.mjs keeps; `plot` the path of the picture from the page. */
export function page(results, peers, plot) {
  const ratios = ratiosOf(results);
  const shown = PATHS.filter(({ key }) => results.paths[key]);
  const paths = shown.map(({ key }) => results.paths[key]);
  const asked = new Set(paths.flatMap(({ names }) => names));
  const names = [...Object.keys(OWN_TITLES), ...Object.keys(peers)].filter((name) => asked.has(name));
  const pins = Object.assign({}, ...paths.map((path) => path.pins));
  const has = (name) => (column) => name in (ratios[column.path][column.run] ?? {});
  const columns = shown.flatMap(({ key, title, modern, runs }) =>
    runs.map((run) => ({ path: key, run: run.key, modern, title: `${title}, ${run.title}` })),
  );
  const measuredPeers = names.filter((name) => name in peers && columns.some(has(name)));
  const cpuTable = (some) => {
    const rows = names.filter((name) => name !== 'direct' && some.some(has(name)));
    const cells = (name) => some.map(({ path, run }) => times(ratios[path][run]?.[name]));
    return table(
      ['', ...some.map(({ title }) => title.replace(', 2026-07-28', ''))],
      rows.map((name) => [titleOf(name, peers), ...cells(name)]),
    );
  };
  const shortRows = columns.map(({ path, run, title }) => {
    const measured = Object.entries(ratios[path][run] ?? {}).filter(([name, value]) => name in peers && value > 0);
    const [least] = measured.sort(([, a], [, b]) => a - b);
    const [own, governed] = ['toolgate', 'governed'].map((name) => times(ratios[path][run]?.[name]));
    return [
      title,
      own,
      governed,
      least ? `${times(least[1])} (${titleOf(least[0], peers)})` : '–',
      least ? times(median(measured.map(([, value]) => value))) : '–',
      String(measured.length),
    ];
  });
  const figure = (path, run, name, key) => {
    const samples = results.paths[path]?.runs[run]?.samples[name];
    return samples && median(samples.map((sample) => sample?.[key]));
  };
  const timed = ['http', 'stdio'].filter((path) => results.paths[path]);
  const speedRows = names
    .filter((name) => timed.some((path) => figure(path, 'one', name, 'p50') !== undefined))
    .map((name) => [
      titleOf(name, peers),
      ...timed.flatMap((path) => [
        milliseconds(figure(path, 'one', name, 'p50')),
        milliseconds(figure(path, 'many', name, 'p99')),
        count(figure(path, 'many', name, 'perSecond')),
      ]),
    ]);
  const aboutRows = names.map((name) => [
    titleOf(name, peers),
    OWN_ABOUT[name] ?? `${peers[name].language}; ${peers[name].about}`,
    pins[name] ? `${pins[name].registry}: \`${pins[name].package}\` ${pins[name].version}` : 'this repository',
  ]);
  const missing = names.flatMap((name) =>
    whyMissing(name, shown, results).map((row) => [titleOf(name, peers), ...row]),
  );
  const modern = columns.filter((column) => column.modern);
  return `# Benchmark

What a call costs on its way through Toolgate and through ${measuredPeers.length} other published gateways and bridges. \`npm run bench:peers\` wrote this page.

**How to read it.** The figures are CPU time of the process in the middle per \`tools/call\`, with everything that it started except for the server, divided by that of a bare proxy in the same round. 1.00 is the bare proxy, less is better. Each is the median of ${roundsIn(results)} rounds of one run, in which the contenders took turns in random order. A second run differs by a tenth, and more on a busy machine. Trust a factor of two; do not trust a few percent.

${table(['', 'Toolgate', 'Toolgate with policy, limits and audit', 'cheapest peer', 'median of the peers', 'peers'], shortRows)}

"HTTP to stdio" is a client over HTTP and a server on stdio. With 1 caller and with 32 callers the result is about a hundred bytes; "1 MB" is one caller whose results have a megabyte.

${runsOf(shown, results)}

![CPU per call](${plot})

## CPU per call

${cpuTable(columns.filter((column) => !column.modern))}

"–" is a path that a contender does not do, or that failed: [below](#what-was-not-measured).
${modern.length === 0 ? '' : `\nThe same in the revision 2026-07-28 of the protocol, for those that speak it:\n\n${cpuTable(modern)}\n`}
## Time and throughput

Milliseconds of a call in the middle with one caller, and of the slowest hundredth with 32 callers; calls per second with 32 callers. All processes share the cores of one machine, so these say less than the CPU time.

${table(['', ...timed.flatMap((path) => [`${path === 'http' ? 'HTTP to HTTP' : 'HTTP to stdio'}: p50`, 'p99', 'calls/s'])], speedRows)}

## What the contenders are

They do different things on the way of a call. A bridge that copies bytes is cheaper to build than a gateway that decides about each call; the table says what each does. All run with their defaults, without telemetry and with as little logging as they allow.

${table(['', 'what it does here', 'installed from'], aboutRows).replaceAll('--:', '---')}

## What was not measured

${missing.length === 0 ? 'Everything was.' : `| contender | path | why |\n| --- | --- | --- |\n${missing.map((row) => `| ${row.join(' | ')} |`).join('\n')}`}

## Repeat it

\`\`\`sh repeat
npm run bench:peers
npm run bench:peers -- --servers stdio
npm run bench:peers -- --quick
npm run bench:peers -- --only toolgate,fastmcp
npm run bench:peers -- --page
\`\`\`

It needs Linux. It installs the peers in the versions of [pins.json](../bench/peers/pins.json) from npm, PyPI and Go modules to a folder that git ignores, runs for about ten minutes on an idle machine and at most twenty-five, only on loopback, and writes this page, its plot and the [samples](../bench/peers/results.json) of every round. \`--servers http\` and \`--servers stdio\` are the two halves of it. \`--quick\` and \`--only\` print their result and leave the page as it is. \`--page\` measures nothing and writes the page from the samples. A contender that hangs is ended and named. The client, the server and the bare proxy are in [bench](../bench/README.md): the server answers at once, and the client checks the text of each answer.

The upstream server offers ten tools. \`echo\` returns about a hundred bytes, \`big\` a megabyte. With 32 callers each has a session and a connection of its own. In the revision 2026-07-28 there are no sessions, and both the client and the server speak it.
`;
}

/** Paths and reasons. The same reason on all paths is said once. */
function whyMissing(name, shown, { paths }) {
  const found = shown.flatMap(({ key, title, runs }) => {
    const { reasons, runs: measured } = paths[key];
    if (reasons[name]) return [[title, reasons[name]]];
    return runs.flatMap((run) => {
      const reason = measured[run.key]?.reasons[name];
      return reason ? [[`${title}, ${run.title}`, reason]] : [];
    });
  });
  const titles = new Map();
  for (const [title, reason] of found) titles.set(reason, [...(titles.get(reason) ?? []), title]);
  return [...titles].map(([reason, some]) => [
    some.length === shown.length && shown.length > 1 ? 'all' : some.join('; '),
    cell(reason),
  ]);
}

/** Where and when: one line for each group of paths that were measured in one go. */
function runsOf(shown, { paths }) {
  const groups = new Map();
  for (const { key, transport } of shown) {
    const { machine } = paths[key];
    const where = `${machine.date}, ${machine.cpu}, ${machine.cores} cores, Node ${machine.node}`;
    groups.set(where, [...(groups.get(where) ?? []), { key, transport }]);
  }
  const lines = [...groups].map(([where, some]) => {
    const loads = some.flatMap(({ key }) => paths[key].load);
    const kinds = [...new Set(some.map(({ transport }) => (transport === 'http' ? 'HTTP' : 'stdio')))];
    const what = groups.size === 1 ? '' : ` (servers on ${kinds.join(' and ')})`;
    const first = Number(paths[some[0].key].load[0]);
    return `**This run**${what}: ${where}. The load average was ${Math.min(...loads)} to ${Math.max(...loads)}; the bench itself keeps about two cores busy, and starting the peers more.${busy(first, paths[some[0].key].machine.cores)}`;
  });
  return lines.join('\n\n');
}

/** Ratios of processes that hardly get the CPU, and are never warm, say little. */
const busy = (loadBefore, cores) =>
  loadBefore > 2 * cores
    ? ' **It was busy with other work, so processes were hardly warm and rounds were left out: take the figures as a first look, and repeat the run on a quiet machine.**'
    : '';

const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('<', '&lt;');
const milliseconds = (value) => (value === undefined ? '–' : (value / 1000).toFixed(value < 10_000 ? 2 : 0));
const count = (value) => (value === undefined ? '–' : String(Math.round(value)));

const WIDTH = 860;
const LEFT = 250;
const RIGHT = 60;
const ROW = 18;
const COLOURS = { own: '#0b6e4f', bare: '#8a8f98', peer: '#b9c2cf' };

/** Bars on a logarithmic scale, one group for each path: CPU per call with 32 callers. */
export function plot(results, peers) {
  const ratios = ratiosOf(results);
  const groups = PATHS.filter(({ key }) => ratios[key]?.many).map(({ key, title }) => ({
    title: `${title}, 32 callers`,
    bars: Object.entries(ratios[key].many)
      .filter(([, value]) => value > 0)
      .sort(([, a], [, b]) => a - b),
  }));
  const most = Math.max(10, ...groups.flatMap(({ bars }) => bars.map(([, value]) => value)));
  const least = Math.min(0.5, ...groups.flatMap(({ bars }) => bars.map(([, value]) => value)));
  const x = (value) =>
    LEFT + ((Math.log(value) - Math.log(least)) / (Math.log(most) - Math.log(least))) * (WIDTH - LEFT - RIGHT);
  const lines = [];
  let y = 50;
  for (const { title, bars } of groups) {
    lines.push(text(LEFT, y, title, 'font-weight="bold"'));
    y += 8;
    const top = y;
    for (const [name, value] of bars) {
      const colour = COLOURS[name === 'toolgate' || name === 'governed' ? 'own' : name === 'bare' ? 'bare' : 'peer'];
      // From 1 to the left or to the right: on a logarithmic scale there is no zero.
      const [from, to] = [Math.min(x(1), x(value)), Math.max(x(1), x(value))];
      lines.push(
        `<rect x="${from.toFixed(1)}" y="${y + 3}" width="${Math.max(2, to - from).toFixed(1)}" height="${ROW - 6}" fill="${colour}"/>`,
      );
      lines.push(text(LEFT - 8, y + ROW - 5, titleOf(name, peers), 'text-anchor="end"'));
      lines.push(text(Math.max(x(1), x(value)) + 5, y + ROW - 5, times(value)));
      y += ROW;
    }
    lines.push(`<line x1="${x(1).toFixed(1)}" x2="${x(1).toFixed(1)}" y1="${top}" y2="${y}" stroke="#333"/>`);
    y += 30;
  }
  const head = text(
    LEFT,
    22,
    'CPU per call in multiples of a bare proxy, logarithmic; less is better',
    'font-size="14"',
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}" font-family="sans-serif" font-size="12" fill="#222">
<title>CPU per call of Toolgate and other gateways</title>
<rect width="100%" height="100%" fill="#fff"/>
${head}
${lines.join('\n')}
</svg>
`;
}

function text(x, y, words, more = '') {
  const safe = words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<text x="${x.toFixed(1)}" y="${y}"${more === '' ? '' : ` ${more}`}>${safe}</text>`;
}
