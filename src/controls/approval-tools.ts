/** Tools with which a model, or its client, asks a person for access to a tool or for confirmation before using one. */
import { concerns } from '../access/confirm.ts';
import { isMeant } from '../access/toolset.ts';
import { GatewayError, toGatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { isObject } from '../base/objects.ts';
import { matchesPattern } from '../base/pattern.ts';
import type { Approvals } from '../calls/approvals/approvals.ts';
import type { Grants } from '../calls/approvals/grants.ts';
import type { Call } from '../calls/call.ts';
import type { Caller } from '../calls/caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { builtInEntry, canonicalName, type Entry } from '../catalog/entry.ts';
import type { Approvers, SecurityConfig } from '../config/security.ts';
import type { Control } from '../config/toolsets.ts';
import { toBytes } from '../protocol/json.ts';
import { parseParams } from '../protocol/message.ts';
import { invalid, readArguments, readText } from './arguments.ts';

const definitions: Readonly<Record<Extract<Control, 'request' | 'prompt'>, { name: string; description: string }>> = {
  request: {
    name: 'request_access',
    description:
      'Asks for a tool that you may not use yet. A person or a rule decides; the answer may take minutes. What is granted can be used for a limited time.',
    ...{
      title: 'Request access to a tool',
      inputSchema: {
        type: 'object',
        properties: {
          tool: { type: 'string', description: 'The tool, as "server.tool" or by its name.' },
          reason: { type: 'string', description: 'What you need it for. A person reads this.' },
        },
        required: ['tool', 'reason'],
        additionalProperties: false,
      },
      annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    },
  },
  prompt: {
    name: 'approval_prompt',
    description: 'Answers the permission prompts of a client: whether a tool of its own may be used with this input.',
    ...{
      title: 'Approval prompt',
      inputSchema: {
        type: 'object',
        properties: {
          tool_name: { type: 'string', description: 'The tool that is to be used.' },
          input: { type: 'object', description: 'What it is to be used with.' },
          tool_use_id: { type: 'string' },
          agent_identity: { type: 'string', description: 'Who wants to use it, if not the client itself.' },
        },
        required: ['tool_name', 'input'],
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
  },
};

const ENTRIES = { request: builtInEntry(definitions.request), prompt: builtInEntry(definitions.prompt) };

export function approvalEntries(controls: readonly Control[]): Entry[] {
  return (['request', 'prompt'] as const).filter((one) => controls.includes(one)).map((one) => ENTRIES[one]);
}

export interface ApprovalToolContext {
  readonly approvals: Approvals;
  readonly grants: Grants;
  readonly events: EventSink;
  security(): SecurityConfig;
  /** Everything that all servers offer, before policies apply. */
  catalog(): Catalog;
  /** Whether a grant would change anything for the agent. */
  isGrantable(agent: string, entry: Entry): boolean;
}

/**
 * Returns false if the call is for another tool. These calls do not queue behind each other, because a person may take
 * minutes to decide.
 */
export function runApprovalTool(context: ApprovalToolContext, caller: Caller, call: Call): boolean {
  const { name } = call.entry;
  const run = name === ENTRIES.request.name ? requestAccess : name === ENTRIES.prompt.name ? answerPrompt : null;
  if (run === null) return false;
  const args = parseParams(call.message).arguments;
  try {
    run(context, caller, call, args);
  } catch (error) {
    call.fail(toGatewayError(error));
  }
  return true;
}

function requestAccess(context: ApprovalToolContext, caller: Caller, call: Call, given: unknown): void {
  const args = readArguments(given, ['tool', 'reason']);
  const tool = readText(args, 'tool', 200);
  const reason = readText(args, 'reason', 1_000);
  const { agent } = caller;
  if (find(caller.view().catalog, tool) !== null) {
    answerText(call, `You may use "${tool}" already.`);
    return;
  }
  const entry = find(context.catalog(), tool);
  const rule = context
    .security()
    .grants.find(
      ({ agents, tools }) =>
        concerns(agents, agent) &&
        tools.some((one) => matchesPattern(one, tool) || (entry !== null && isMeant(one, entry))),
    );
  if (rule === undefined) throw new GatewayError('not_approved', `No rule lets you request access to "${tool}".`);
  const grant = (by: string, duration: number) => {
    // The same answer as for a refusal, so that an agent cannot find out which tools exist.
    if (entry === null || !context.isGrantable(agent, entry)) {
      call.fail(new GatewayError('not_approved', `Access to "${tool}" was not granted.`));
      return;
    }
    const until = Date.now() + duration;
    context.grants.add(agent, canonicalName(entry), until);
    const detail = `${canonicalName(entry)} until ${new Date(until).toISOString()}, by ${by}: ${reason}`;
    context.events.emit('admin', { act: 'access_granted', agent, detail });
    answerText(call, `You may use "${entry.name}" until ${new Date(until).toISOString()}.`);
  };
  if (!rule.approval) {
    grant(rule.place, rule.duration);
    return;
  }
  const offer = entry === null ? 'no server offers it' : canonicalName(entry);
  const need = { kind: 'access', agent, tool, arguments: offer, reason } as const;
  const asking = context.approvals.ask(need, withoutClient(context.security().approvers), call, (decision) => {
    call.waiting = null;
    if (decision.approved) grant(decision.by, decision.lasting ?? rule.duration);
    else call.fail(new GatewayError('not_approved', `Access to "${tool}" was not granted.`));
  });
  call.waiting = { quit: () => asking.withdraw('the agent no longer waits') };
}

/** Only people with a key may grant access that a policy withholds. */
function withoutClient(approvers: Approvers): Approvers {
  const { operator, people } = approvers;
  return { ...approvers, client: false, operator: operator || people.length === 0 };
}

function answerPrompt(context: ApprovalToolContext, { agent }: Caller, call: Call, given: unknown): void {
  if (!isObject(given)) throw invalid('The arguments must be an object.');
  const tool = readText(given, 'tool_name', 200);
  const { input } = given;
  if (!isObject(input)) throw invalid('"input" must be an object.');
  const answer = (approved: boolean, message: string) =>
    answerText(
      call,
      JSON.stringify(approved ? { behavior: 'allow', updatedInput: input } : { behavior: 'deny', message }),
    );
  const rule = context
    .security()
    .prompts.find(({ agents, tools }) => concerns(agents, agent) && tools.some((one) => matchesPattern(one, tool)));
  const action = rule?.action ?? 'ask';
  if (action !== 'ask') {
    answer(action === 'allow', `${rule!.place} does not allow it.`);
    return;
  }
  const who = typeof given.agent_identity === 'string' ? ` for ${given.agent_identity}` : '';
  const question = {
    kind: 'prompt',
    agent,
    tool,
    arguments: JSON.stringify(input),
    reason: `its client asks${who}`,
  } as const;
  let isOver = false;
  const asking = context.approvals.ask(question, context.security().approvers, call, ({ approved, by, reason }) => {
    isOver = true;
    call.waiting = null;
    answer(approved, `Not approved (by ${by})${reason === '' ? '' : `: ${reason}`}.`);
  });
  if (!isOver) call.waiting = { quit: () => asking.withdraw('the client no longer waits') };
}

/** Finds a tool by its exposed name or as `server.tool`. */
function find({ entries }: Catalog, tool: string): Entry | null {
  const named = entries.tool.get(tool);
  if (named !== undefined) return named;
  for (const entry of entries.tool.values()) if (canonicalName(entry) === tool) return entry;
  return null;
}

function answerText(call: Call, text: string): void {
  call.result(toBytes({ content: [{ type: 'text', text }] }), 'legacy');
}
