/** How long expressions take: no arguments, however large or nested, make one hold up other calls. */
import { beforeAll, describe, expect, it } from 'vitest';
import { circumstancesAt, decideWith, plainSubject } from '../../src/access/circumstances.ts';
import { expressionProblem } from '../../src/config/expression.ts';
import { configFromValue, type Gateway, openHttpDoor } from '../../src/index.ts';
import { readMessage } from '../../src/protocol/read.ts';
import { type Ask, openAsk } from '../support/asking.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { createRandom } from '../support/random.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { runs, some } from '../support/wide.ts';

/** Milliseconds of computing that a call may take, by what the stall meter of hostile requests allows. */
const MOST = 100;

const often = (times: number, text: string) => Array(times).fill(text).join(' && ');
const EXPRESSIONS = [
  'args.l.all(x, args.l.all(y, x != y))',
  'args.l.all(x, args.l.all(y, args.l == args.l))',
  `args.l.all(x, args.l.all(y, ${often(60, 'args.l == args.l')}))`,
  often(40, 'args.l.all(x, args.l.all(y, args.l == args.l))'),
  often(100, 'args.s.split("").size() > 0'),
  'args.l.map(x, args.l + args.l).size() >= 0',
  'args.l.map(x, args.l.map(y, [x, y])).size() >= 0',
  'args.l.map(x, args.l).all(z, z == z)',
  'args.l.all(x, x in args.l)',
  '[args.l].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).size() == 1',
  'cel.bind(a, args.s + args.s, cel.bind(b, a + a, cel.bind(c, b + b, cel.bind(d, c + c, (d + d).size() > 1))))',
  'args.s.split("").all(c, c in args.s.split(""))',
  'args.s.split("").join(args.p).size() > 1',
  'args.s.like(args.p)',
  'args.s.indexOf(args.p) > 3',
  'duration(args.s) > duration("1s")',
  'timestamp(args.s) > now',
  'int(args.s) > 3',
  'args.t.all(x, timestamp(x).getHours("Europe/Berlin") > 1)',
  'args.l.size() >= 0',
];

/** Sizes below, around and far above what the limits allow. */
const SIZES = some([10, 100, 300, 1_000, 3_000, 19_000, 100_000, 1_000_000], [10, 300, 3_000, 100_000, 1_000_000]);

const ALL = ['l', 't', 's', 'p'];

/** The JSON of a size's arguments, by their keys. */
const made = new Map<number, Record<string, string>>();

/** Arguments of this size with these keys. */
function argumentsOf(size: number, keys: readonly string[] = ALL): string {
  const values = made.get(size) ?? {
    l: `[${Array(Math.min(size, 200_000)).fill('1').join(',')}]`,
    t: `[${Array(Math.min(size, 10_000)).fill('"2026-11-16T08:00:00Z"').join(',')}]`,
    s: `"${'a'.repeat(size)}"`,
    p: `"*${'a'.repeat(size >> 1)}b"`,
  };
  made.set(size, values);
  return `{${keys.map((key) => `"${key}":${values[key]}`).join()}}`;
}

/** The least of three, because something else may run in between, such as a collection of garbage. */
function computing(run: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 3 && least > MOST; i++) {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1_000);
  }
  return least;
}

const messageOf = (args: string) =>
  readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":${args}}}`));
const circumstances = circumstancesAt(plainSubject('a'), Date.now());

it.each(EXPRESSIONS)('%s takes no long time, whatever the sizes are', (when) => {
  expect(expressionProblem(when)).toBeNull();
  const keys = [...new Set([...when.matchAll(/args\.(\w)/g)].map(([, key]) => key!))];
  for (const size of SIZES) {
    for (const message of [messageOf(argumentsOf(size)), messageOf(argumentsOf(size, keys))]) {
      expect(
        computing(() => decideWith(when, circumstances, message)),
        `${size}`,
      ).toBeLessThan(MOST);
    }
  }
});

it('expressions made at random take no long time', () => {
  const { pick, number } = createRandom();
  const list = (depth: number, names: readonly string[]): string =>
    depth === 0
      ? pick(['args.l', 'args.s.split("")', ...names])
      : pick([
          () => `(${list(depth - 1, names)} + ${list(depth - 1, names)})`,
          () => `${list(depth - 1, names)}.map(v${depth}, ${list(depth - 1, [...names, `v${depth}`])})`,
          () => `${list(depth - 1, names)}.filter(v${depth}, ${test(depth - 1, [...names, `v${depth}`])})`,
          () => `[${list(depth - 1, names)}, ${list(depth - 1, names)}]`,
        ])();
  const test = (depth: number, names: readonly string[]): string =>
    depth === 0
      ? pick(['args.l == args.l', 'args.s.contains(args.s)', `${pick(['1', ...names])} in args.l`])
      : pick([
          () => `(${test(depth - 1, names)} && ${test(depth - 1, names)})`,
          () => `${list(depth - 1, names)}.all(w${depth}, ${test(depth - 1, [...names, `w${depth}`])})`,
          () => `${list(depth - 1, names)} != ${list(depth - 1, names)}`,
          () => `${list(depth - 1, names)}.size() >= 0`,
        ])();
  let tried = 0;
  for (let i = 0; i < runs(2_000); i++) {
    const when = test(1 + number(4), []);
    if (expressionProblem(when) !== null) continue;
    tried++;
    const message = messageOf(argumentsOf(pick([10, 30, 100, 300, 1_000, 3_000]), ['l', 's']));
    expect(
      computing(() => decideWith(when, circumstances, message)),
      when,
    ).toBeLessThan(MOST);
  }
  expect(tried).toBeGreaterThan(20);
});

it('arguments of ordinary sizes are decided', () => {
  const files = Array.from({ length: 2_000 }, (_, i) => `src/some/folder/file-${i}.ts`);
  const decide = (when: string, args: object) => decideWith(when, circumstances, messageOf(JSON.stringify(args))).holds;
  expect(decide('args.files.all(f, f.startsWith("src/") && !f.like("*.env"))', { files })).toBe(true);
  expect(decide('args.a.all(x, args.b.exists(y, x == y))', { a: files.slice(0, 50), b: files.slice(0, 80) })).toBe(
    true,
  );
  expect(decide('size(args.content) < 4000000', { content: 'x'.repeat(3_000_000) })).toBe(true);
  expect(decide('!(args.text.contains("password"))', { text: 'x'.repeat(3_000_000) })).toBe(true);
});

describe('a call through the gateway', () => {
  let gateway: Gateway;
  let ask: Ask;
  const configOf = (when: string) =>
    configFromValue(
      { mcpServers: { s: serverEntry('basic') }, controls: [], conditions: [{ tools: ['s.echo'], when }] },
      { cwd: tempFolder(), env: {} },
    );

  beforeAll(async () => {
    gateway = createGateway(configOf('true'));
    atEnd(() => gateway.close());
    const door = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0 });
    atEnd(() => door.close());
    await gateway.tried();
    ask = await openAsk('http', gateway, `http://127.0.0.1:${door.port}`, 'a', {});
  });

  it('is denied without a stall if its arguments are too large for the expression', async () => {
    gateway.apply(configOf(EXPRESSIONS[2]!));
    const params = `{"name":"s_echo","arguments":${argumentsOf(300)}}`;
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 4 && least > MOST; i++) {
      const before = process.cpuUsage();
      expect(JSON.stringify(await ask('tools/call', params))).toContain('a condition on its arguments is not met');
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, (user + system) / 1_000);
    }
    expect(least).toBeLessThan(MOST);
  });
});
