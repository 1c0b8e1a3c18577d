/**
 * Expressions in CEL, the Common Expression Language, in conditions of a policy. The library is loaded with the first
 * expression. Each text is compiled once.
 */
import { createRequire } from 'node:module';
import type { ASTNode, Environment } from '@marcbachmann/cel-js';
import { BoundedMap } from '../base/bounded-map.ts';
import { messageOf } from '../base/errors.ts';
import { getOrMake } from '../base/memo.ts';
import { matchesPattern } from '../base/pattern.ts';
import { didYouMean } from '../base/text.ts';
import { expressionCost, type ValueSize } from './expression-cost.ts';
import type { Task } from './task.ts';

/** What an expression can look at. Maps, not objects: a key from outside must never mean a property of an object. */
export interface ExpressionVariables {
  readonly agent: string;
  readonly claims: ReadonlyMap<string, unknown>;
  readonly task: Task;
  readonly now: Date;
  readonly args: ReadonlyMap<string, unknown>;
}

export type ExpressionVariable = keyof ExpressionVariables;

export interface Expression {
  readonly uses: ReadonlySet<ExpressionVariable>;
  /** Names of keys that it mentions. */
  readonly names: ReadonlySet<string>;
  /** Whether arguments and claims of these sizes could make it so much work that other calls would have to wait. */
  takesLong(args: ValueSize, claims: ValueSize): boolean;
  /** Throws if it cannot be decided: a key is missing, a type is wrong, or the result is not true or false. */
  decide(variables: ExpressionVariables): boolean;
}

const VARIABLES: readonly ExpressionVariable[] = ['agent', 'args', 'claims', 'now', 'task'];
const LOOPS = ['all', 'exists', 'exists_one', 'map', 'filter'];
const MOST_LOOPS = 2;
/** About 50 ms of work at worst; what estimates miss must not make it more than twice that. */
const MOST_COST = 5_000_000;
/** Bytes that an expression without loops cannot make much work of. */
const SMALL_ENOUGH = 1_024;
/** Names and tasks: as long as a header can be. */
const HEADER: ValueSize = { bytes: 16_384, values: 4 };
/** More than anybody writes, and few enough to be read in no time. */
const LIMITS = { maxAstNodes: 1_000, maxDepth: 50 };

const load = createRequire(import.meta.url);
let environment: Environment | null = null;

function openEnvironment(): Environment {
  // Configurations are resolved without waiting, so it is not imported but required.
  const { Environment } = load('@marcbachmann/cel-js') as typeof import('@marcbachmann/cel-js');
  const parts = { service: 'string', type: 'string', description: 'string', profile: 'string' };
  return new Environment({ unlistedVariablesAreDyn: false, homogeneousAggregateLiterals: false, limits: LIMITS })
    .registerVariable('agent', 'string')
    .registerVariable('claims', 'map<string, dyn>')
    .registerVariable({ name: 'task', schema: parts })
    .registerVariable('now', 'google.protobuf.Timestamp')
    .registerVariable('args', 'map<string, dyn>')
    .registerFunction('string.like(string): bool', (text: string, pattern: string) => matchesPattern(pattern, text));
}

const compiled = new BoundedMap<string, Expression>(1_000);

/** The text has passed `expressionProblem`. */
export function expressionOf(text: string): Expression {
  return getOrMake(compiled, text, compile);
}

/** What is wrong with an expression, and where; null if nothing is. */
export function expressionProblem(text: string): string | null {
  try {
    expressionOf(text);
    return null;
  } catch (error) {
    const { range } = error as { range?: { start: number } };
    const at = range === undefined ? '' : ` at character ${range.start + 1}`;
    return `is not a valid expression${at}: ${reasonOf(error)}`;
  }
}

/** The first line of an error of the library. The others repeat the expression. */
function reasonOf(error: unknown): string {
  const [reason = ''] = messageOf(error).split('\n');
  const unknown = /^Unknown variable: (.*)$/.exec(reason)?.[1];
  if (unknown === undefined) return reason;
  return `there is no variable "${unknown}".${didYouMean(unknown, VARIABLES) || ` It may use ${VARIABLES.join(', ')}`}`;
}

function compile(text: string): Expression {
  environment ??= openEnvironment();
  const program = environment.parse(text);
  const found = survey(program.ast);
  const { valid, type, error } = program.check();
  if (!valid) throw error;
  if (type !== 'bool' && type !== 'dyn') throw new Error(`its value is of type ${type}, and not true or false`);
  const { uses, names, loops } = found;
  return {
    uses,
    names,
    takesLong(args, claims) {
      // Most calls are small, and most expressions have no loop. Then no estimate is needed.
      if (loops === 0 && args.bytes + claims.bytes < SMALL_ENOUGH) return false;
      return expressionCost(program.ast, { args, claims, agent: HEADER, task: HEADER }) > MOST_COST;
    },
    decide(variables) {
      let value: unknown;
      try {
        value = program(variables);
      } catch (failure) {
        throw new Error(reasonOf(failure));
      }
      if (typeof value !== 'boolean') throw new Error('its value is not true or false');
      return value;
    },
  };
}

/** Throws if it has something that could take too long. */
function survey(root: ASTNode): Pick<Expression, 'uses' | 'names'> & { readonly loops: number } {
  const uses = new Set<ExpressionVariable>();
  const names = new Set<string>();
  let loops = 0;
  const visit = (node: ASTNode, depth: number): void => {
    switch (node.op) {
      case 'id':
        if ((VARIABLES as readonly string[]).includes(node.args)) uses.add(node.args as ExpressionVariable);
        return;
      case 'value':
        if (typeof node.args === 'string') names.add(node.args);
        return;
      case '.':
      case '.?':
        names.add(node.args[1]);
        visit(node.args[0], depth);
        return;
      case 'rcall': {
        const [name, receiver, args] = node.args;
        if (name === 'matches')
          throw misplaced(
            node,
            'there is no "matches", which could take very long. Use like("*.txt"), with "*" and "?"',
          );
        const inside = LOOPS.includes(name) ? depth + 1 : depth;
        if (inside > MOST_LOOPS) throw misplaced(node, `"${name}" is inside of two others, which could take very long`);
        loops = Math.max(loops, inside);
        visit(receiver, depth);
        for (const one of args) visit(one, inside);
        return;
      }
      default:
        for (const one of nodesIn(node.args)) visit(one, depth);
    }
  };
  visit(root, 0);
  return { uses, names, loops };
}

/** An error at the place of a node. */
function misplaced({ start }: ASTNode, message: string): Error {
  return Object.assign(new Error(message), { range: { start } });
}

function nodesIn(args: unknown): ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(nodesIn);
  return typeof args === 'object' && args !== null && 'op' in args ? [args as ASTNode] : [];
}
