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
  bare: 'written by hand for this measurement: passes bytes on and checks nothing. Everything is compared with it',
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

/** The page. `results` is what run.mjs collects; `plot` the path of the picture from the page. */
export function page(results, peers, plot) {
  const { names, pins, machine } = results;
  const ratios = ratiosOf(results);
  const shown = PATHS.filter(({ key }) => results.paths[key]);
  const ran = names.filter((name) => shown.some(({ key }) => Object.values(ratios[key]).some((run) => name in run)));
  const measuredPeers = ran.filter((name) => name in peers);
  const columns = shown.flatMap(({ key, title, runs }) =>
    runs.map((run) => ({ path: key, run: run.key, title: `${title}, ${run.title}` })),
  );
  const cpuRows = ran
    .filter((name) => name !== 'direct')
    .map((name) => [titleOf(name, peers), ...columns.map(({ path, run }) => times(ratios[path][run]?.[name]))]);
  const figure = (path, run, name, key) => {
    const samples = results.paths[path]?.runs[run]?.samples[name];
    return samples && median(samples.map((sample) => sample?.[key]));
  };
  const speedRows = ran.map((name) => [
    titleOf(name, peers),
    ...['http', 'stdio'].flatMap((path) => [
      milliseconds(figure(path, 'one', name, 'p50')),
      milliseconds(figure(path, 'many', name, 'p99')),
      count(figure(path, 'many', name, 'perSecond')),
    ]),
  ]);
  const aboutRows = names.map((name) => [
    titleOf(name, peers),
    OWN_ABOUT[name] ?? peers[name].about,
    pins[name] ? `${pins[name].registry}: \`${pins[name].package}\` ${pins[name].version}` : 'this repository',
  ]);
  const missing = names.flatMap((name) =>
    shown.flatMap(({ key, title, runs }) => {
      const { reasons, runs: measured } = results.paths[key];
      if (reasons[name]) return [`| ${titleOf(name, peers)} | ${title} | ${cell(reasons[name])} |`];
      return runs.flatMap((run) => {
        const reason = measured[run.key]?.reasons[name];
        return reason ? [`| ${titleOf(name, peers)} | ${title}, ${run.title} | ${cell(reason)} |`] : [];
      });
    }),
  );
  return `# Benchmark

What a call costs on its way through Toolgate and through ${measuredPeers.length} other published gateways and bridges. \`npm run bench:peers\` wrote this page.

**How to read it.** The figures are CPU time of the process in the middle per \`tools/call\`, with everything that it started except for the server, divided by that of a bare proxy in the same round. 1.00 is the bare proxy, less is better. Each is the median of ${roundsIn(results)} rounds of one run, in which the contenders took turns in random order. A second run differs by a tenth, and more on a busy machine. Trust a factor of two; do not trust a few percent.

**This run**: ${machine.date}, ${machine.cpu}, ${machine.cores} cores, load average ${machine.loadBefore} before and ${machine.loadAfter} after, Node ${machine.node}. The bench itself keeps about two cores busy; a load above that is other work on the machine.${busy(machine)}

![CPU per call](${plot})

## CPU per call

${table(['', ...columns.map(({ title }) => title)], cpuRows)}

"–" is a path that a contender does not do, or that failed: [below](#what-was-not-measured).

## Time and throughput

Milliseconds of a call in the middle with one caller, and of the slowest hundredth with 32 callers; calls per second with 32 callers. All processes share the cores of one machine, so these say less than the CPU time.

${table(['', ...['HTTP to HTTP', 'HTTP to stdio'].flatMap((path) => [`${path}: p50`, 'p99', 'calls/s'])], speedRows)}

## What the contenders are

They do different things on the way of a call. A bridge that copies bytes is cheaper to build than a gateway that decides about each call; the table says what each does. All run with their defaults, without telemetry and with as little logging as they allow.

${table(['', 'what it does here', 'installed from'], aboutRows).replaceAll('--:', '---')}

## What was not measured

${missing.length === 0 ? 'Everything was.' : `| contender | path | why |\n| --- | --- | --- |\n${missing.join('\n')}`}

## Repeat it

\`\`\`sh repeat
npm run bench:peers
npm run bench:peers -- --quick
npm run bench:peers -- --only toolgate,fastmcp
\`\`\`

It needs Linux. It installs the peers in the versions of [pins.json](../bench/peers/pins.json) from npm, PyPI and Go modules to a folder that git ignores, runs for about ten minutes on an idle machine and at most twenty-five, only on loopback, and writes this page and its plot. \`--quick\` and \`--only\` print their result and leave the page as it is. One that hangs is ended and named. The client, the server and the bare proxy are in [bench](../bench/README.md): the server answers at once, and the client checks the text of each answer.

The upstream server offers ten tools. \`echo\` returns about a hundred bytes, \`big\` a megabyte. With 32 callers each has a session and a connection of its own. In the revision 2026-07-28 there are no sessions, and both the client and the server speak it.
`;
}

/** Ratios of processes that hardly get the CPU, and are never warm, say little. */
const busy = ({ loadBefore, cores }) =>
  Number(loadBefore) > 2 * cores
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
