/** What the policy decides on a request, without a gateway: by the same steps that a call takes there. */
import { GatewayError } from '../base/errors.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Config } from '../config/config.ts';
import { narrowToTask } from '../plans/narrow-to-task.ts';
import { toBytes } from '../protocol/json.ts';
import { readMessage } from '../protocol/read.ts';
import type { Subject } from './circumstances.ts';
import { confirmationFor } from './confirm.ts';
import { denialReason } from './explain.ts';
import { findPrompt, findResource, findTool } from './find.ts';
import { narrowToPermission, permissionAt, requireArguments } from './permission.ts';
import { startSelection } from './selection.ts';
import { buildView, type View } from './view.ts';

/** A request for one item. */
export interface DecidedRequest {
  readonly subject: Subject;
  /** In milliseconds since 1970. */
  readonly now: number;
  readonly kind: 'tool' | 'resource' | 'prompt';
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** What is decided, the rule that decides, and why; null if no rule does. */
export interface RequestDecision {
  readonly decision: 'allow' | 'deny' | 'confirm';
  readonly rule: string | null;
  readonly why: string | null;
}

const METHODS = { tool: 'tools/call', resource: 'resources/read', prompt: 'prompts/get' } as const;

/** Rules that are only tried count as if they were enforced. Throws if nothing has the name. */
export function decideRequest(
  catalog: Catalog,
  { policy: written, security, tasks }: Pick<Config, 'policy' | 'security' | 'tasks'>,
  request: DecidedRequest,
): RequestDecision {
  const { subject, now, kind, name } = request;
  const policy = written && enforced(written);
  const permission = permissionAt(policy, subject, now);
  const allowed = narrowToPermission(catalog, permission);
  const visible = subject.task === null ? allowed : narrowToTask(allowed, subject.task, tasks.rules());
  const controls = { entries: () => [], alias: () => undefined, advice: () => '' };
  const view = buildView(visible, startSelection(null), controls, permission);
  const params = kind === 'resource' ? { uri: name } : { name, arguments: request.arguments };
  const message = readMessage(toBytes({ jsonrpc: '2.0', id: 1, method: METHODS[kind], params }));
  try {
    const entry = find(view, kind, name);
    if (permission !== null) requireArguments(permission, entry, message);
    const confirm = security.confirm.map((rule) => ({ ...rule, condition: { ...rule.condition, dryRun: false } }));
    const { rule } = kind === 'tool' ? confirmationFor(confirm, subject, entry, message, now) : { rule: null };
    if (rule !== null) return { decision: 'confirm', rule: rule.place, why: null };
    return { decision: 'allow', rule: null, why: null };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    if (error.code === 'arguments_denied') return { decision: 'deny', rule: error.rule, why: error.why };
    const kinds = kind === 'resource' ? (['resource', 'template'] as const) : [kind];
    const reason = denialReason(catalog, policy, { subject, name, kinds, namespace: null }, new Date(now));
    if (reason === null) throw error;
    const rule = reason.rule ?? (subject.task === null ? null : 'task');
    return { decision: 'deny', rule, why: reason.text };
  }
}

type Policy = NonNullable<Config['policy']>;

function enforced(policy: Policy): Policy {
  const all = (conditions: Policy['conditions']) => conditions.map((one) => ({ ...one, dryRun: false }));
  return {
    ...policy,
    dryRun: false,
    conditions: all(policy.conditions),
    agents: policy.agents.map((agent) => ({ ...agent, dryRun: false, conditions: all(agent.conditions) })),
  };
}

function find(view: View, kind: DecidedRequest['kind'], name: string): Entry {
  if (kind === 'tool') return findTool(view, name);
  return kind === 'prompt' ? findPrompt(view, name) : findResource(view, name).entry;
}
