/**
 * Runs a macro: its steps run one after the other, each as a call of the same caller, until one fails or all are done.
 */
import { GatewayError, messageOf, toGatewayError } from '../../base/errors.ts';
import { memo } from '../../base/memo.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { canonicalName, type Entry } from '../../catalog/entry.ts';
import type { MacroConfig, MacroStep } from '../../config/macros.ts';
import { fill, follow, type Reference, referencesIn, type Template } from '../../config/template.ts';
import type { Sink, Ticket } from '../../protocol/contract.ts';
import { toBytes } from '../../protocol/json.ts';
import { idText, isRequest, parseParams } from '../../protocol/message.ts';
import { notificationMessage, textResult } from '../../protocol/rpc.ts';
import type { Call } from '../call.ts';
import type { Caller } from '../caller.ts';
import { type StepAnswer, StepSink } from './step.ts';

/** What a macro needs from its gateway. */
export interface MacroContext {
  /** Everything that the policy lets the caller use. */
  allowed(by: Caller): Catalog;
  /** Calls a tool for the caller, like any of its own calls. */
  call(by: Caller, entry: Entry, args: object, id: string, sink: Sink): Ticket;
}

/** The key in `_meta` that requests a dry run: nothing is called, and the result lists the calls that would be made. */
export const DRY_RUN = 'toolgate/dryRun';

/** The maximum length, in characters, of a failed step's message. */
const MOST_MESSAGE = 4_000;

export function runMacro(macro: MacroConfig, call: Call, context: MacroContext): Ticket {
  const { steps } = macro;
  const answers = new Map<string, StepAnswer>();
  const done: MacroStep[] = [];
  const params = parseParams(call.message);
  let input: unknown;
  let current: Ticket | null = null;
  let isOver = false;
  let last: StepAnswer | null = null;
  /** The index of the running step. */
  let at = 0;
  const timer = setTimeout(() => {
    current?.cancel('the macro took too long');
    stop(`The macro took longer than ${macro.timeout} ms.`);
  }, macro.timeout);

  const lookup = ({ root, path: [name = '', ...path] }: Reference): unknown => {
    if (root === 'input') return follow(input, [name, ...path]);
    const answer = answers.get(name);
    return root === 'texts' ? answer?.text : follow(answer?.value, path);
  };

  function finish(end: () => void): void {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    end();
  }

  /** Ends the macro because the running step has failed. */
  function stop(why: string): void {
    const step = steps[at]!;
    const message = why.length > MOST_MESSAGE ? `${why.slice(0, MOST_MESSAGE)}…` : why;
    const left = steps.slice(at + 1).map(named);
    const text = [
      `The macro "${macro.name}" failed in step ${at + 1} of ${steps.length}, ${named(step)}: ${message}`,
      done.length === 0 ? 'Nothing was done before it.' : `Done before it: ${done.map(named).join(', ')}.`,
      ...(left.length === 0 ? [] : [`Not done: ${left.join(', ')}.`]),
    ].join('\n');
    const details = { step: step.id, done: done.map(({ id }) => id) };
    finish(() => call.fail(new GatewayError('macro_failed', text, { details })));
  }

  function run(next: number): void {
    if (isOver) return;
    at = next;
    const step = steps[at];
    if (step === undefined) answer();
    else if (holds(step, lookup)) start(step);
    else run(at + 1);
  }

  function start(step: MacroStep): void {
    reportProgress(step.id);
    const entry = findStep(context.allowed(call.by), step);
    const args = argumentsOf(step, lookup, answers);
    if (typeof args === 'string') stop(args);
    else if (entry === undefined) stop(`The tool "${step.tool}" is not available.`);
    else {
      const sink = new StepSink(call, { done: (result) => proceed(step, result), failed: stop });
      current = context.call(call.by, entry, args, `${idOf(call)}#${step.id}`, sink);
    }
  }

  function proceed(step: MacroStep, result: StepAnswer): void {
    if (isOver) return;
    last = result;
    answers.set(step.id, result);
    done.push(step);
    // A server may answer synchronously. Without the microtask, each step would then add to the stack.
    queueMicrotask(() => run(at + 1));
  }

  /** Only if the caller asked for progress. */
  function reportProgress(message: string): void {
    const token = call.token;
    if (token === null) return;
    const progress = {
      progressToken: JSON.parse(token.toString()) as unknown,
      progress: at,
      total: steps.length,
      message,
    };
    call.notify(notificationMessage('notifications/progress', toBytes(progress)));
  }

  function answer(): void {
    try {
      const result =
        macro.output === null ? (last?.bytes ?? textResult('No step had to run.')) : outputOf(macro.output);
      finish(() => call.result(result, 'legacy'));
    } catch (error) {
      const text = `The macro "${macro.name}" ran all its steps, but its output cannot be built: ${messageOf(error)}.`;
      finish(() => call.fail(new GatewayError('macro_failed', text)));
    }
  }

  function outputOf(output: Template): Buffer {
    const value = fill(output, lookup) ?? '';
    if (typeof value === 'string') return textResult(value);
    const content = [{ type: 'text', text: JSON.stringify(value) }];
    // Structured content has to be an object, in all revisions that have it.
    return toBytes(
      typeof value === 'object' && !Array.isArray(value) ? { content, structuredContent: value } : { content },
    );
  }

  try {
    input = inputOf(macro, params.arguments);
    requireSteps(macro, context.allowed(call.by));
    const meta = params._meta as Record<string, unknown> | undefined;
    if (meta?.[DRY_RUN] === true) finish(() => call.result(dryRun(macro, context.allowed(call.by), lookup), 'legacy'));
    else run(0);
  } catch (error) {
    finish(() => call.fail(toGatewayError(error)));
  }
  return {
    cancel(reason) {
      isOver = true;
      clearTimeout(timer);
      current?.cancel(reason);
    },
  };
}

function named({ id, tool }: MacroStep): string {
  return `"${id}" (${tool})`;
}

function idOf({ message }: Call): string {
  return isRequest(message) ? idText(message).replaceAll('"', '') : '';
}

function inputOf(macro: MacroConfig, args: unknown): unknown {
  const checked = macro.check(args ?? {});
  if ('value' in checked) return checked.value;
  throw new GatewayError(
    'arguments_invalid',
    `The arguments of "${macro.name}" are wrong: ${checked.problem}. Nothing was done.`,
  );
}

/** The tools by canonical name. Indexed once per catalog: searching ten thousand tools for every step would be slow. */
const toolsOf = memo(
  ({ entries }: Catalog) => new Map([...entries.tool.values()].map((entry) => [canonicalName(entry), entry])),
);

function findStep(catalog: Catalog, { tool }: MacroStep): Entry | undefined {
  return toolsOf(catalog).get(tool);
}

/** Checked before the first step, so that a macro does not stop halfway because a tool is missing. */
function requireSteps(macro: MacroConfig, catalog: Catalog): void {
  const held = macro.steps.map((one) => findStep(catalog, one)?.item.held).find((text) => text !== undefined);
  if (held !== undefined)
    throw new GatewayError('item_held', `The macro "${macro.name}" cannot run. ${held} Nothing was done.`);
  const step = macro.steps.find((one) => findStep(catalog, one) === undefined);
  if (step === undefined) return;
  const text = `The macro "${macro.name}" cannot run: the tool "${step.tool}" is not available. Nothing was done.`;
  throw new GatewayError('source_unavailable', text);
}

function holds({ when }: MacroStep, lookup: (reference: Reference) => unknown): boolean {
  if (when === null) return true;
  const value = fill(when.value, lookup);
  const isMet = when.equals === null ? isTruthy(value) : plain(value) === plain(fillOrUndefined(when.equals, lookup));
  return isMet !== when.negated;
}

/** A template with a missing part has no value. It equals only another missing value. */
function fillOrUndefined(template: Template, lookup: (reference: Reference) => unknown): unknown {
  try {
    return fill(template, lookup);
  } catch {
    return undefined;
  }
}

function isTruthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return Boolean(value) && value !== 'false';
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/**
 * The arguments, or a message about what is missing. An argument whose referenced answer is missing must not be
 * left out: the tool could then do something else.
 */
function argumentsOf(
  step: MacroStep,
  lookup: (reference: Reference) => unknown,
  answers: ReadonlyMap<string, StepAnswer>,
): object | string {
  for (const reference of referencesIn(step.arguments)) {
    const [name = ''] = reference.path;
    const isMissing = reference.root === 'steps' && answers.has(name) && lookup(reference) === undefined;
    if (isMissing && reference.otherwise === null)
      return `There is nothing for \${${reference.text}}: ${describeAnswer(answers.get(name)!)}.`;
  }
  try {
    return fill(step.arguments, lookup) as object;
  } catch (error) {
    return `${messageOf(error)}.`;
  }
}

function describeAnswer({ value }: StepAnswer): string {
  if (typeof value !== 'object' || value === null) return 'that step answered with a text';
  return `that step answered with ${Object.keys(value).slice(0, 20).join(', ') || 'nothing'}`;
}

/** The calls that would be made and their arguments, as far as they are known before any step has run. */
function dryRun(macro: MacroConfig, catalog: Catalog, lookup: (reference: Reference) => unknown): Buffer {
  const isOpen = (template: Template) => referencesIn(template).some(({ root }) => root !== 'input');
  const shown = (reference: Reference) => (reference.root === 'input' ? lookup(reference) : `\${${reference.text}}`);
  const steps = macro.steps.map((step) => {
    const isKnown =
      step.when !== null && ![step.when.value, step.when.equals].some((one) => one !== null && isOpen(one));
    const runs = step.when === null ? true : isKnown ? holds(step, lookup) : 'depends';
    return { id: step.id, tool: findStep(catalog, step)?.name, runs, arguments: fill(step.arguments, shown) };
  });
  const value = { macro: macro.name, dryRun: true, steps };
  return toBytes({ content: [{ type: 'text', text: JSON.stringify(value, null, 2) }], structuredContent: value });
}
