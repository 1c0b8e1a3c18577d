/**
 * Calls that wait for a person's approval. They hold no place in any limit while they wait. The operator can decide at
 * any time. The person at the client is asked only if the configuration says so, or on stdio: over HTTP anyone who has the
 * token of an agent can answer in that person's place. The first decision counts.
 */
import { randomBytes } from 'node:crypto';
import { GatewayError, messageOf } from '../../base/errors.ts';
import type { EventSink } from '../../base/events.ts';
import { escaped, quotedList } from '../../base/text.ts';
import type { Config } from '../../config/config.ts';
import type { EnvVars } from '../../config/expand.ts';
import type { Approvers, ConfirmRule } from '../../config/security.ts';
import type { Sink } from '../../protocol/contract.ts';
import { toBytes } from '../../protocol/json.ts';
import { FORM_MODE, type Question } from '../../protocol/question.ts';
import { notificationMessage } from '../../protocol/rpc.ts';
import { type ApprovalBoard, openApprovalBoard } from '../../store/approval-board.ts';
import type { ApprovalRequest, Verdict } from '../../store/approval-files.ts';
import { operatorKey } from '../../store/operator.ts';
import type { Replica, ReplicaMessage } from '../../store/shared/replica.ts';
import type { Call } from '../call.ts';

/** The approval requests that are waiting for a decision. */
export interface ApprovalRequests {
  /** The open approval requests, oldest first. */
  list(): ApprovalRequest[];
  /**
   * Returns false if the approval request does not exist or is no longer open. `person` is the one whose key it was; null
   * for the operator. Throws if that one may not approve it. If more people have to approve, it stays open.
   */
  decide(id: string, decision: Verdict, person?: string | null): boolean;
  /**
   * The gateway is about to stop. Calls that wait are answered now: a person may need longer than the gateway has. Calls
   * that come later are refused.
   */
  stop(): void;
}

export interface Approvals extends ApprovalRequests {
  /**
   * Returns true if the call need not wait, because an earlier approval still applies. Otherwise the call continues
   * when it is approved.
   */
  hold(call: Call, rule: ConfirmRule): boolean;
  /** Requests an approval for what this call does. */
  ask(
    need: ApprovalNeed,
    approvers: Approvers,
    call: Call,
    decided: (decision: Verdict) => void,
  ): { withdraw(reason: string): void };
  close(): Promise<void>;
}

export type ApprovalNeed = Pick<ApprovalRequest, 'kind' | 'agent' | 'tool' | 'arguments' | 'reason'>;

export interface ApprovalsOptions {
  readonly events: EventSink;
  readonly env: EnvVars;
  /** The configuration in force. */
  config(): Pick<Config, 'security' | 'dataDir'>;
  redact(text: string): string;
  /** Null if there is no other replica. */
  readonly replica?: Replica | null;
}

interface WaitingApproval {
  request: ApprovalRequest;
  readonly approvers: Approvers;
  /** Who has approved it, in order. */
  readonly given: Map<string, Verdict>;
  readonly call: Call;
  readonly timer: NodeJS.Timeout;
  question: Question | null;
  decided(decision: Verdict): void;
}

const MOST = 1_000;
const MOST_PER_AGENT = 100;
/**
 * A person has to see everything that they decide on, so nothing is cut. Calls whose arguments are longer than anybody
 * could read are refused. The totals bound what waiting calls keep in memory and in files.
 */
const LONGEST = 1_000_000;
const LONGEST_OF_AGENT = 8 * LONGEST;
const LONGEST_OF_ALL = 64 * LONGEST;
/** Milliseconds between progress notifications to a client that asked for progress, while the call waits. */
const PROGRESS_INTERVAL = 10_000;
/** Milliseconds after which another replica is told a decision again. */
const TELL_AGAIN = 1_000;
const nothing = () => {};

export function createApprovals({ events, env, config, redact, replica = null }: ApprovalsOptions): Approvals {
  const open = new Map<string, WaitingApproval>();
  /** For each agent and tool, the time until which no further approval is needed. */
  const lasting = new Map<string, number>();
  let board: ApprovalBoard | null = null;
  let isStopped = false;
  const sharedLasting = replica?.map('lasting', (key, until) => {
    if (typeof until === 'number') lasting.set(key, until);
  });
  /** The requests of all replicas, each with the one whose call waits. */
  const everywhere = replica?.map('approvals');
  // What ended while its replica was dead would stay for ever.
  void replica?.loaded().then(forgetOld, nothing);
  replica?.hear('decide', ({ id, decision, who }) => {
    // It was decided already, and its sender has not heard that yet.
    if (!open.has(String(id))) return;
    try {
      take(String(id), decision as Verdict, String(who));
    } catch (error) {
      events.emit('note', { source: 'toolgate', message: messageOf(error) });
    }
  });

  function forgetOld(): void {
    for (const [key, until] of sharedLasting?.entries() ?? [])
      if (Number(until) < Date.now()) sharedLasting?.set(key, null).catch(nothing);
    for (const [id, one] of everywhere?.entries() ?? []) {
      const { request, owner } = one as { request: ApprovalRequest; owner: string };
      const isOver = Date.parse(request.expires) < Date.now();
      if (isOver && owner !== replica?.id) everywhere?.set(id, null).catch(nothing);
    }
  }

  function publish(request: ApprovalRequest): void {
    everywhere?.set(request.id, { request, owner: replica?.id }).catch(() => {});
  }

  /** Those whose calls wait at other replicas that are alive. */
  function others(): { readonly request: ApprovalRequest; readonly owner: string }[] {
    const all = [...(everywhere?.entries() ?? [])] as [string, { request: ApprovalRequest; owner: string }][];
    return all
      .map(([, one]) => one)
      .filter(({ owner }) => owner !== replica?.id && replica?.isAlive(owner) === true)
      .filter(({ request }) => Date.parse(request.expires) > Date.now());
  }

  function end(id: string, decision: Verdict, state: string): boolean {
    const waiting = open.get(id);
    if (waiting === undefined) return false;
    open.delete(id);
    clearTimeout(waiting.timer);
    if (isStopped) board?.leave(id);
    else board?.retract(id);
    const { agent, tool, kind, reason: rule } = waiting.request;
    const { by, reason } = decision;
    // Before the request is gone: a replica that sees none any more must not ask for what was approved for a while.
    if (decision.approved && decision.lasting !== null && kind === 'call') {
      const until = Date.now() + decision.lasting;
      lasting.set(lastingKey(agent, tool, rule), until);
      sharedLasting?.set(lastingKey(agent, tool, rule), until).catch(nothing);
    }
    everywhere?.set(id, null).catch(nothing);
    events.emit('approval', { id, state, agent, tool, by, reason });
    waiting.question?.withdrawn('it has been decided');
    waiting.decided(decision);
    return true;
  }

  function decide(id: string, decision: Verdict, person: string | null = null): boolean {
    return take(id, decision, person ?? OPERATOR);
  }

  /** `who` is the name of a person, or stands for the operator or the client. */
  function take(id: string, decision: Verdict, who: string): boolean {
    const waiting = open.get(id);
    if (waiting === undefined) return takeElsewhere(id, decision, who);
    const { request, approvers, given } = waiting;
    // The operator can always stop a call.
    const isOperatorsNo = who === OPERATOR && !decision.approved;
    if (!request.approvers.includes(who) && !isOperatorsNo)
      throw new GatewayError('forbidden', `Only ${quotedList(request.approvers)} may decide on ${id}.`);
    const verdict = { ...decision, by: nameOf(who, decision.by) };
    if (!decision.approved) return end(id, verdict, 'denied');
    given.set(who, verdict);
    if (given.size >= approvers.require) return end(id, combined([...given.values()]), 'approved');
    waiting.request = { ...request, approved: [...given.keys()] };
    publish(waiting.request);
    board?.update(waiting.request);
    const { agent, tool } = request;
    events.emit('approval', { id, state: 'agreed', agent, tool, by: verdict.by, reason: verdict.reason });
    return true;
  }

  /** The replica whose call waits decides. It is asked, and this one answers by what it knows. */
  function takeElsewhere(id: string, decision: Verdict, who: string): boolean {
    const found = others().find(({ request }) => request.id === id);
    if (found === undefined) return false;
    const { request, owner } = found;
    if (!request.approvers.includes(who) && !(who === OPERATOR && !decision.approved))
      throw new GatewayError('forbidden', `Only ${quotedList(request.approvers)} may decide on ${id}.`);
    tellDecision(owner, id, { id, decision, who });
    return true;
  }

  /** Until the request is gone: a replica that stalls, or a store that is away, may lose a message. */
  function tellDecision(owner: string, id: string, body: ReplicaMessage): void {
    void replica?.send(owner, 'decide', body).catch(nothing);
    const timer = setInterval(() => {
      const one = everywhere?.get(id) as { readonly request: ApprovalRequest } | undefined;
      if (one !== undefined && Date.parse(one.request.expires) > Date.now() && !isStopped)
        void replica?.send(owner, 'decide', body).catch(nothing);
      else clearInterval(timer);
    }, TELL_AGAIN).unref();
  }

  /** The holder of the operator key says who they are. That must not look like a person who has a key of their own. */
  function nameOf(who: string, by: string): string {
    if (who !== OPERATOR) return who === CLIENT ? by : who;
    return config().security.people.length === 0 ? by : `the operator (${by})`;
  }

  function requireRoom({ agent, tool }: ApprovalNeed, length: number): void {
    if (isStopped) throw stopped(tool);
    if (length > LONGEST)
      throw new GatewayError(
        'too_large',
        `The call of "${tool}" needs the approval of a person, and its arguments are too long to be read: ${length} characters of at most ${LONGEST}. Split the call.`,
      );
    const all = [...open.values()].map(({ request }) => request);
    const own = all.filter((request) => request.agent === agent);
    const isFull =
      all.length >= MOST ||
      own.length >= MOST_PER_AGENT ||
      lengthOf(all) + length > LONGEST_OF_ALL ||
      lengthOf(own) + length > LONGEST_OF_AGENT;
    if (isFull)
      throw new GatewayError('source_busy', 'Too many calls are already waiting for an approval. Try again later.');
  }

  function add(
    need: ApprovalNeed,
    approvers: Approvers,
    call: Call,
    decided: WaitingApproval['decided'],
  ): ApprovalRequest {
    const given = escaped(redact(need.arguments));
    requireRoom(need, given.length);
    const { timeout, onTimeout } = config().security;
    const id = randomBytes(6).toString('hex');
    const now = Date.now();
    const request: ApprovalRequest = {
      ...need,
      id,
      arguments: given,
      reason: escaped(redact(need.reason)),
      asked: new Date(now).toISOString(),
      expires: new Date(now + timeout).toISOString(),
      approvers: namesOf(approvers),
      require: approvers.require,
      approved: [],
    };
    const late = { approved: onTimeout === 'allow', by: 'time', lasting: null, reason: 'nobody decided in time' };
    const timer = setTimeout(() => end(id, late, 'expired'), timeout);
    open.set(id, { request, approvers, given: new Map(), call, timer, question: null, decided });
    const { agent, tool, reason } = request;
    events.emit('approval', { id, state: 'asked', agent, tool, by: agent, reason });
    return request;
  }

  function openBoard(): ApprovalBoard {
    return openApprovalBoard(config().dataDir, () => operatorKey(env), {
      decided(id, verdict) {
        try {
          decide(id, verdict);
        } catch (error) {
          events.emit('note', { source: 'toolgate', message: messageOf(error) });
        }
      },
      note: (message) => events.emit('note', { source: 'toolgate', message }),
    });
  }

  /** Asks the person at the client. */
  function askClient(request: ApprovalRequest, sink: Sink, onlyClient: boolean): void {
    const waiting = open.get(request.id)!;
    const { agent } = request;
    const failed = (why: string) => {
      waiting.question = null;
      if (onlyClient) take(request.id, { approved: false, by: 'the client', lasting: null, reason: why }, CLIENT);
    };
    const question: Question = {
      method: 'elicitation/create',
      params: toBytes({ message: wordsFor(request), requestedSchema: { type: 'object', properties: {} } }),
      lasting: false,
      answer(result) {
        waiting.question = null;
        const action = actionIn(result);
        if (action === null) failed("the client's answer was invalid");
        else {
          const isAccepted = action === 'accept';
          const reason = isAccepted ? '' : 'it was declined';
          take(request.id, { approved: isAccepted, by: `the client of ${agent}`, lasting: null, reason }, CLIENT);
        }
      },
      refuse: () => failed('the client could not ask its user'),
      withdrawn: nothing,
    };
    waiting.question = question;
    sink.ask(question);
  }

  function ask(
    need: ApprovalNeed,
    wanted: Approvers,
    call: Call,
    decided: WaitingApproval['decided'],
  ): { withdraw(reason: string): void } {
    const asksClient = (wanted.client ?? call.by.door === 'stdio') && call.asks.has(FORM_MODE);
    const approvers = { ...wanted, client: asksClient };
    const onlyClient = !approvers.operator && approvers.people.length === 0;
    if (onlyClient && !asksClient) {
      const reason = 'only the person at the client may approve it, and this client cannot ask';
      decided({ approved: false, by: 'client', lasting: null, reason });
      return { withdraw: nothing };
    }
    const request = add(need, approvers, call, decided);
    if (!onlyClient) {
      board ??= openBoard();
      board.publish(request);
      publish(request);
    }
    if (asksClient) askClient(request, call, onlyClient);
    const withdraw = (reason: string) => {
      const waiting = open.get(request.id);
      if (waiting === undefined) return;
      // The caller has gone, so there is nothing to report the decision to.
      waiting.decided = nothing;
      const by = isStopped ? 'the gateway' : request.agent;
      const why = isStopped ? 'it is being stopped' : reason;
      end(request.id, { approved: false, by, lasting: null, reason: why }, isStopped ? 'ended' : 'withdrawn');
    };
    return { withdraw };
  }

  return {
    hold(call, rule) {
      const { entry, by, message, token } = call;
      const key = lastingKey(by.agent, entry.name, rule.place);
      const until = lasting.get(key);
      if (until !== undefined) {
        if (Date.now() < until) return true;
        lasting.delete(key);
      }
      const { bytes, argumentsStart, argumentsEnd } = message;
      const given = argumentsStart < 0 ? '{}' : bytes.toString('utf8', argumentsStart, argumentsEnd);
      const need = { kind: 'call', agent: by.agent, tool: entry.name, arguments: given, reason: rule.place } as const;
      let progress: NodeJS.Timeout | undefined;
      let isDecided = false;
      const asking = ask(need, rule.approvers, call, (decision) => {
        isDecided = true;
        clearInterval(progress);
        call.waiting = null;
        if (decision.approved) call.resume();
        else call.fail(denied(entry.name, decision));
      });
      if (isDecided) return false;
      // Started only if the call really waits. A call that was refused at once gets no progress.
      if (token !== null) progress = setInterval(keepAlive(call, token), PROGRESS_INTERVAL).unref();
      call.waiting = {
        quit() {
          clearInterval(progress);
          call.waiting = null;
          asking.withdraw('the call was cancelled');
        },
      };
      return false;
    },
    ask,
    list: () => [...[...open.values()].map(({ request }) => request), ...others().map(({ request }) => request)],
    decide,
    stop() {
      isStopped = true;
      for (const { call, request } of [...open.values()]) {
        call.waiting?.quit();
        call.fail(stopped(request.tool));
      }
    },
    async close() {
      for (const { timer } of open.values()) clearTimeout(timer);
      open.clear();
      await board?.close();
    },
  };
}

/** How they are called in `approvers` of a request. */
const OPERATOR = 'operator';
const CLIENT = 'client';

function namesOf({ client, operator, people }: Approvers): string[] {
  return [...people, ...(operator ? [OPERATOR] : []), ...(client === true ? [CLIENT] : [])];
}

/** An approval that lasts counts for calls under the same rule: another rule may ask more people. */
function lastingKey(agent: string, tool: string, rule: string): string {
  return JSON.stringify([agent, tool, rule]);
}

/** What several people decided together. It lasts as long as all of them allow. */
function combined(verdicts: readonly Verdict[]): Verdict {
  const times = verdicts.map(({ lasting }) => lasting);
  return {
    approved: true,
    by: verdicts.map(({ by }) => by).join(' and '),
    lasting: times.includes(null) ? null : Math.min(...(times as number[])),
    reason: verdicts
      .map(({ reason }) => reason)
      .filter((reason) => reason !== '')
      .join('; '),
  };
}

function denied(tool: string, { by, reason }: Verdict): GatewayError {
  const why = reason === '' ? '' : `: ${reason}`;
  const text = `The call of "${tool}" needs the approval of a person and was not approved (by ${by})${why}. Do not try it again unless you are told to.`;
  return new GatewayError('not_approved', text);
}

/** In seconds. About as long as a restart takes. */
const RETRY_AFTER = 10;

function stopped(tool: string): GatewayError {
  return new GatewayError(
    'source_unavailable',
    `The call of "${tool}" needs the approval of a person, and the gateway is being stopped or restarted. It was not made. Call again in a moment.`,
    { details: { retryAfter: RETRY_AFTER } },
  );
}

function lengthOf(requests: readonly ApprovalRequest[]): number {
  return requests.reduce((sum, request) => sum + request.arguments.length, 0);
}

function wordsFor({ agent, tool, arguments: given, reason }: ApprovalRequest): string {
  return `The agent "${escaped(agent)}" wants to call "${escaped(tool)}" with ${given}. It needs your approval (${reason}). Allow it?`;
}

function actionIn(result: Buffer): 'accept' | 'decline' | 'cancel' | null {
  try {
    const { action } = JSON.parse(result.toString()) as { action?: unknown };
    return action === 'accept' || action === 'decline' || action === 'cancel' ? action : null;
  } catch {
    return null;
  }
}

/**
 * Progress must increase with each notification. The steps are tiny, so that the server's own progress is still
 * greater.
 */
function keepAlive(call: Call, token: Buffer): () => void {
  let steps = 0;
  return () => {
    const text = `,"progress":${++steps * 1e-9},"message":"waiting for a person to approve the call"}`;
    const params = Buffer.concat([Buffer.from('{"progressToken":'), token, Buffer.from(text)]);
    call.inner.notify(notificationMessage('notifications/progress', params));
  };
}
