/**
 * What the tools of folders and programs ask during a call. A question names its call, so it goes to the client of that
 * call and to no other.
 */
import { messageOf } from '../base/errors.ts';
import { askedBy, BadQuestion } from '../protocol/asked-by.ts';
import { withElicitationId } from '../protocol/elicitation.ts';
import { toBytes } from '../protocol/json.ts';
import { capabilityFor, type Question } from '../protocol/question.ts';
import type { AskOutcome } from '../tools/tool-run.ts';
import type { PendingRequest } from './pending.ts';
import { STATE_METHODS, useState } from './session-state.ts';

const nothing = () => {};

/** `done` is called at most once. The returned function withdraws the question. */
export function askFor(
  pending: PendingRequest | undefined,
  namespace: string,
  method: string,
  params: unknown,
  done: (outcome: AskOutcome) => void,
): () => void {
  if (pending === undefined) {
    done({ error: 'The call is over.' });
    return nothing;
  }
  if (STATE_METHODS.has(method)) {
    done(stateOutcome(pending, namespace, method, params));
    return nothing;
  }
  return askClient(pending, method, params, done);
}

function stateOutcome({ request }: PendingRequest, namespace: string, method: string, params: unknown): AskOutcome {
  try {
    return { result: useState(request.client, namespace, method, params) };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

function askClient(
  pending: PendingRequest,
  method: string,
  params: unknown,
  done: (outcome: AskOutcome) => void,
): () => void {
  const { sink } = pending.request;
  const bytes = withElicitationId(toBytes(params ?? {}));
  const capability = capabilityFor(method, bytes);
  if (capability === null || method === 'roots/list' || !sink.asks.has(capability)) {
    done({ error: capability === null ? `A tool cannot ask ${method}.` : unsupported(capability) });
    return nothing;
  }
  const why = pending.countQuestion();
  if (why !== null) {
    done({ error: `The question was not asked: ${why}.` });
    return nothing;
  }
  let asked: Buffer | null;
  try {
    asked = askedBy(pending.table.source, method, bytes);
  } catch (error) {
    if (!(error instanceof BadQuestion)) throw error;
    done({ error: `The question was not asked: ${error.message}.` });
    return nothing;
  }
  let isOpen = true;
  const resume = pending.pause();
  const close = () => {
    const was = isOpen;
    isOpen = false;
    if (was) resume();
    return was;
  };
  const question: Question = {
    method,
    params: asked,
    lasting: false,
    answer: (result) => void (close() && done({ result: JSON.parse(result.toString()) })),
    refuse: (error) => void (close() && done({ error: refusalText(method, error) })),
    withdrawn: nothing,
  };
  sink.ask(question);
  return () => void (close() && question.withdrawn('the tool no longer needs the answer'));
}

function unsupported(capability: string): string {
  if (capability === 'sampling')
    return 'The client of this call does not support sampling, so its model cannot be used.';
  const mode = capability.endsWith('url') ? 'elicitation with a URL' : 'elicitation';
  return `The client of this call does not support ${mode}, so its user cannot be asked.`;
}

function refusalText(method: string, error: Buffer): string {
  const { message } = JSON.parse(error.toString()) as { message?: unknown };
  return typeof message === 'string' ? message : `The client did not answer ${method}.`;
}
