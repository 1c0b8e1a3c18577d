/**
 * Runs a tool once, for `test_tool`: in a worker of its own, with the sandbox, the secrets and the packages that the core
 * gives its workers. The core does not notice, whatever the tool does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { decideRequest } from '../access/decide-request.ts';
import { narrowToPermission, permissionAt } from '../access/permission.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { isObject } from '../base/objects.ts';
import { didYouMean } from '../base/text.ts';
import { buildCatalog } from '../catalog/catalog.ts';
import type { Config } from '../config/config.ts';
import type { ServerConfig } from '../config/servers.ts';
import { bareResult } from '../doors/http/rest/plain-result.ts';
import { isWrapped } from '../doors/http/rest/unwrap-output.ts';
import type { SourceSets } from '../gateway/source-sets.ts';
import { ASKS } from '../protocol/bridge.ts';
import { join } from '../protocol/parts.ts';
import { startAsking, UpstreamError } from '../sources/ask.ts';
import { problemText } from '../sources/last-good.ts';
import type { Source } from '../sources/source.ts';
import { findManaged, type ManagedNamespace } from './managed-namespace.ts';

export type TestOutcome =
  | { readonly success: true; readonly result: unknown }
  | { readonly success: false; readonly error: string; readonly traceback: string };

export interface TestRun {
  readonly namespace: string;
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Whose policy holds. */
  readonly agent: string;
  readonly signal: AbortSignal;
  progress(message: string): void;
}

/** How often we look what the worker does, and how long it has to print what it printed before it answered. */
const LOOK = 1_000;
const PRINTED = 20;
const MOST_PRINTED = 500;
const MOST_TRACEBACK = 20_000;
let lastRun = 0;

/** Rejects if there is no such namespace. Everything else is an outcome. */
export async function testTool(config: Config, sets: SourceSets, run: TestRun): Promise<TestOutcome> {
  const managed = await findManaged(config, run.namespace);
  const problems: string[] = [];
  const known: string[] = [];
  // A folder in two languages has two workers.
  for (const server of managed.servers) {
    const id = sets.openFresh({ ...server, key: `${server.key} (test ${++lastRun})`, start: 'eager', required: false });
    const { source } = sets.find(id)!;
    try {
      await untilTried(source, run);
      if (!source.present) {
        const { state, detail, stderr } = source.status();
        return {
          success: false,
          error: `${managed.name} is ${state}: ${detail}`,
          traceback: stderr.slice(-MOST_TRACEBACK),
        };
      }
      const { allowed, refusal } = policyFor(config, managed, server, source, run);
      if (refusal !== null) return failure(refusal, '');
      if (allowed.includes(run.tool)) return await call(source, server, run);
      known.push(...allowed);
      problems.push(...source.status().problems.map(problemText));
    } finally {
      sets.release(id);
      void source.close();
    }
  }
  const hint =
    didYouMean(run.tool, known) || (known.length > 0 ? ` It has: ${known.join(', ')}.` : ' It has no tools.');
  return {
    success: false,
    error: `There is no tool ${JSON.stringify(run.tool.slice(0, 80))} in the namespace "${managed.name}".${hint}`,
    traceback: problems.join('\n'),
  };
}

async function untilTried(source: Source, { progress, signal }: TestRun): Promise<void> {
  const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  const looking = setInterval(() => progress(`${source.status().state} ${source.status().detail}`.trim()), LOOK);
  try {
    await Promise.race([source.tried, aborted]);
  } finally {
    clearInterval(looking);
  }
  if (signal.aborted) throw new GatewayError('cancelled', 'The test was cancelled.');
}

/** What the policy for the core says. */
interface CorePolicy {
  /** The names of the tools that the agent may use. */
  readonly allowed: readonly string[];
  /** Why it may not make this call; null if it may. */
  readonly refusal: string | null;
}

function policyFor(
  config: Config,
  { name }: ManagedNamespace,
  { key }: ServerConfig,
  { offer }: Source,
  run: TestRun,
): CorePolicy {
  const subject = { agent: run.agent, claims: null, task: null };
  const now = Date.now();
  const catalog = buildCatalog(0, [{ id: 1, key, namespace: name, offer, present: true }], []);
  const entries = [...narrowToPermission(catalog, permissionAt(config.policy, subject, now)).entries.tool.values()];
  const allowed = entries.map(({ item }) => item.name);
  const entry = entries.find(({ item }) => item.name === run.tool);
  if (entry === undefined) return { allowed, refusal: null };
  const request = { subject, now, kind: 'tool' as const, name: entry.name, arguments: run.input };
  const { decision, why } = decideRequest(catalog, config, request);
  if (decision === 'allow') return { allowed, refusal: null };
  if (decision === 'confirm')
    return {
      allowed,
      refusal: 'A person has to confirm this call, and a test cannot ask. Call the tool at the core instead.',
    };
  return { allowed, refusal: `The policy does not allow this call${why === null ? '' : `: ${why}`}.` };
}

async function call(source: Source, server: ServerConfig, run: TestRun): Promise<TestOutcome> {
  const item = source.offer.items.find(({ kind, name }) => kind === 'tool' && name === run.tool)!;
  const before = source.status().stderr.length;
  const params = { name: run.tool, arguments: run.input };
  const asked = startAsking(
    { request: (request) => source.call({ ...request, item }) },
    'tools/call',
    params,
    server.timeout,
  );
  run.signal.addEventListener('abort', () => asked.ticket.cancel('The test was cancelled.'), { once: true });
  const looking = setInterval(() => run.progress(`running ${run.tool}`), LOOK);
  try {
    const cancelled = new Promise<never>((_, reject) =>
      run.signal.addEventListener('abort', () => reject(new GatewayError('cancelled', 'The test was cancelled.')), {
        once: true,
      }),
    );
    const result = await Promise.race([asked.answer, cancelled]);
    const bare = bareResult(result, isWrapped(item));
    if (bare === ASKS) return failure('The tool asks its user something, which a test cannot answer.', '');
    const value: unknown = JSON.parse(join(bare.value).toString());
    if (!bare.isError) return { success: true, result: value };
    const printed = await printedSince(source, before);
    return failure(errorText(value), printed || placeText(value));
  } catch (error) {
    const text = error instanceof UpstreamError ? error.message : messageOf(error);
    return failure(text, await printedSince(source, before));
  } finally {
    clearInterval(looking);
  }
}

function failure(error: string, traceback: string): TestOutcome {
  return { success: false, error, traceback: traceback.slice(-MOST_TRACEBACK) };
}

/** `KeyError: 'GITHUB_TOKEN'` */
function errorText(value: unknown): string {
  if (!isObject(value)) return typeof value === 'string' ? value : JSON.stringify(value);
  const { message = '', details } = value;
  const type = isObject(details) && typeof details.type === 'string' ? details.type : '';
  return type === '' || type === 'Error' || String(message).startsWith(type)
    ? String(message)
    : `${type}: ${String(message)}`;
}

function placeText(value: unknown): string {
  const details = isObject(value) ? value.details : null;
  return isObject(details) && typeof details.file === 'string' ? `${details.file}:${String(details.line)}` : '';
}

/** What the tool printed while it ran, without secrets. It comes on another way than the answer, so we wait a moment. */
async function printedSince(source: Source, before: number): Promise<string> {
  let printed = '';
  for (let waited = 0; waited < MOST_PRINTED; waited += PRINTED) {
    await sleep(PRINTED);
    const now = source.status().stderr.slice(before);
    if (now !== '' && now === printed) break;
    printed = now;
  }
  const start = printed.indexOf('Traceback (most recent call last)');
  return (start < 0 ? printed : printed.slice(start)).trim();
}
