/**
 * How much work an expression can be, by the sizes of what it looks at. The estimate follows the syntax tree: how large
 * each part can become, and how often it is computed. So one that would hold up other calls is refused before it runs.
 * A unit is about 10 ns.
 */
import type { ASTNode } from '@marcbachmann/cel-js';

/** How large a value can be. */
export interface ValueSize {
  readonly bytes: number;
  /** How many values it has, with those inside of others. */
  readonly values: number;
}

/**
 * The size of a part. Of the elements of a list, `bytes` and `values` are the mean, because work that grows with the size
 * of each adds up to that of the list. `longest` and `length` are the most that one of them can have.
 */
interface PartSize extends ValueSize {
  readonly longest: number;
  readonly length: number;
}

interface Estimate {
  readonly size: PartSize;
  readonly cost: number;
}

type Sizes = Readonly<Record<string, PartSize>>;

const NODE = 10;
const SMALL = sizeOf({ bytes: 64, values: 1 });
const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);
/** Units for each byte of what a function gets. */
const PER_BYTE: Readonly<Record<string, number>> = {
  contains: 0.1,
  indexOf: 0.1,
  lastIndexOf: 0.1,
  startsWith: 0,
  endsWith: 0,
  size: 0.8,
  lowerAscii: 0.5,
  upperAscii: 0.5,
  trim: 0.5,
  like: 1,
  split: 20,
  json: 40,
  join: 1,
  duration: 200,
};
const USUAL_PER_BYTE = 5;
const SEARCHES: ReadonlySet<string> = new Set(['contains', 'indexOf', 'lastIndexOf']);
/** A search may compare the whole pattern for each 250 bytes of the text, and `like` for each byte. */
const SEARCH = 1 / 2_500;
const LIKE = 0.2;
/** A time in another time zone is computed by printing it. */
const TIME_ZONE = 5_000;

/** The cost of the whole expression, in units. */
export function expressionCost(root: ASTNode, sizes: Readonly<Record<string, ValueSize>>): number {
  return estimate(root, Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, sizeOf(size)]))).cost;
}

function sizeOf({ bytes, values }: ValueSize): PartSize {
  return { bytes, values, longest: bytes, length: values };
}

function estimate(node: ASTNode, sizes: Sizes): Estimate {
  switch (node.op) {
    case 'value': {
      const length = typeof node.args === 'string' ? node.args.length : 16;
      return { size: { bytes: length, values: 1, longest: length, length: 0 }, cost: NODE };
    }
    case 'id':
      return { size: sizes[node.args] ?? SMALL, cost: NODE };
    case '.':
    case '.?': {
      const { size, cost } = estimate(node.args[0], sizes);
      return { size, cost: cost + NODE };
    }
    case '[]':
    case '[?]': {
      const [of, key] = node.args.map((one) => estimate(one, sizes));
      return { size: of!.size, cost: of!.cost + key!.cost + NODE };
    }
    case '==':
    case '!=':
    case '<':
    case '<=':
    case '>':
    case '>=': {
      const [left, right] = node.args.map((one) => estimate(one, sizes));
      const compared =
        6 * Math.min(left!.size.values, right!.size.values) + Math.min(left!.size.bytes, right!.size.bytes) / 10;
      return { size: SMALL, cost: left!.cost + right!.cost + NODE + compared };
    }
    case 'in': {
      const [one, all] = node.args.map((part) => estimate(part, sizes));
      return { size: SMALL, cost: one!.cost + all!.cost + NODE + 10 * all!.size.values + all!.size.bytes / 10 };
    }
    case 'rcall': {
      const [name, receiver, args] = node.args;
      if (LOOPS.has(name)) return loop(name, estimate(receiver, sizes), args, sizes);
      if (name === 'bind' && args.length === 3) return bind(args, sizes);
      return called(name, [receiver, ...args], sizes);
    }
    case 'call':
      return called(node.args[0], node.args[1], sizes);
    default:
      // Lists, maps, arithmetic and logic: what they are made of.
      return together(nodesIn(node.args), sizes, 12);
  }
}

/** All parts become one value; each value of theirs costs so much. */
function together(parts: readonly ASTNode[], sizes: Sizes, perValue: number): Estimate {
  let [cost, bytes, values, longest, length] = [NODE, 0, 0, 0, 0];
  for (const part of parts) {
    const one = estimate(part, sizes);
    cost += one.cost + perValue * one.size.values + one.size.bytes / 5;
    bytes += one.size.bytes;
    values += one.size.values;
    longest += one.size.longest;
    length += one.size.length + 1;
  }
  return { size: { bytes, values, longest, length }, cost };
}

function loop(name: string, { size, cost }: Estimate, args: readonly ASTNode[], sizes: Sizes): Estimate {
  const [variable, ...body] = args;
  const times = size.length;
  const element = {
    bytes: size.bytes / Math.max(1, times),
    values: Math.max(1, size.values / Math.max(1, times)),
    longest: size.longest,
    length: size.length,
  };
  const inside = variable?.op === 'id' ? { ...sizes, [variable.args]: element } : sizes;
  const bodies = body.map((one) => estimate(one, inside));
  const all = cost + NODE + times * bodies.reduce((sum, one) => sum + one.cost + 2 * NODE, 0);
  if (name === 'filter') return { size, cost: all };
  if (name !== 'map') return { size: SMALL, cost: all };
  const made = bodies.at(-1)?.size ?? SMALL;
  return {
    size: {
      bytes: made.bytes * times,
      values: (made.values + 1) * times,
      longest: made.longest * Math.max(1, times),
      length: Math.max(times, made.length),
    },
    cost: all,
  };
}

function bind([variable, value, body]: readonly ASTNode[], sizes: Sizes): Estimate {
  const bound = estimate(value!, sizes);
  const inside = variable!.op === 'id' ? { ...sizes, [variable!.args]: bound.size } : sizes;
  const { size, cost } = estimate(body!, inside);
  return { size, cost: bound.cost + cost + NODE };
}

function called(name: string, args: readonly ASTNode[], sizes: Sizes): Estimate {
  const { size, cost } = together(args, sizes, 2);
  const extra = cost + size.bytes * (PER_BYTE[name] ?? USUAL_PER_BYTE);
  const [first = SMALL, second = SMALL] = args.map((one) => estimate(one, sizes).size);
  // With a fixed pattern the work grows with the text only, so that of all elements adds up to that of the list.
  const compared = (args[1]?.op === 'value' ? first.bytes : first.longest) * second.longest;
  if (SEARCHES.has(name)) return { size: SMALL, cost: extra + compared * SEARCH };
  if (name === 'like') return { size: SMALL, cost: extra + compared * LIKE };
  // Each character of a text can become an element.
  if (name === 'split' || name === 'json') {
    const { bytes, longest } = size;
    return { size: { bytes, values: bytes, longest, length: longest }, cost: extra };
  }
  if (name === 'join') {
    const bytes = first.bytes + first.values * second.bytes;
    return {
      size: { bytes, values: 1, longest: first.longest + first.length * second.longest, length: 0 },
      cost: extra + bytes,
    };
  }
  return { size, cost: name.startsWith('get') && args.length > 1 ? extra + TIME_ZONE : extra };
}

function nodesIn(args: unknown): ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(nodesIn);
  return typeof args === 'object' && args !== null && 'op' in args ? [args as ASTNode] : [];
}
