/** Asks the person behind a call to log in, by opening an address, and goes on with the call after that. */
import { randomUUID } from 'node:crypto';
import { GatewayError, toGatewayError } from '../base/errors.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import { ASKING, URL_MODE } from '../protocol/question.ts';
import { LoginMissing, type ServerLogin } from './server-login.ts';
import { NoFault } from './tickets.ts';

/** Whether the caller can be sent to an address. */
export function canBeSent({ method, sink }: SourceRequest): boolean {
  return ASKING.has(method) && sink.asks.has(URL_MODE);
}

/** `again` sends the request once somebody is logged in. */
export function askToLogIn(request: SourceRequest, login: ServerLogin, again: () => Ticket | null): Ticket {
  const { sink } = request;
  let isOver = false;
  let ticket: Ticket | null = null;
  const end = (error: GatewayError) => {
    if (isOver) return;
    isOver = true;
    sink.fail(error);
  };
  const goOn = () => {
    if (isOver) return;
    isOver = true;
    try {
      request.recheck?.();
      ticket = again();
    } catch (error) {
      sink.fail(toGatewayError(error));
    }
  };
  const missing = () => end(new LoginMissing(login.key, login.command));
  login.begin().then(
    ({ address, done }) => {
      if (isOver) return;
      const message = `Log in to "${login.key}", so that this call can go on.`;
      const params = { mode: 'url', elicitationId: randomUUID(), message, url: address };
      sink.ask({
        method: 'elicitation/create',
        params: Buffer.from(JSON.stringify(params)),
        lasting: false,
        answer(result) {
          const { action } = JSON.parse(result.toString()) as { action?: unknown };
          if (action === 'accept') done.then(goOn, (error: unknown) => end(toGatewayError(error)));
          else missing();
        },
        refuse: missing,
        withdrawn() {},
      });
    },
    (error: unknown) => end(error instanceof GatewayError ? error : new NoFault('source_unavailable', String(error))),
  );
  return {
    cancel(reason) {
      isOver = true;
      ticket?.cancel(reason);
    },
  };
}
