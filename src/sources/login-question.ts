/** Asks the person behind a call to log in, by opening an address, and goes on with the call after that. */
import { randomUUID } from 'node:crypto';
import { type GatewayError, toGatewayError } from '../base/errors.ts';
import type { SourceRequest } from '../protocol/contract.ts';
import { ASKING, URL_MODE } from '../protocol/question.ts';
import { LoginMissing, type ServerLogin } from './server-login.ts';

/** Whether the caller can be sent to an address. */
export function canBeSent({ method, sink }: SourceRequest): boolean {
  return ASKING.has(method) && sink.asks.has(URL_MODE);
}

/** What happens after the question. One of the two is called, once. */
export interface AfterLogin {
  /** Somebody is logged in. */
  goOn(): void;
  /** Nobody is, and the call ends with this. */
  giveUp(error: GatewayError): void;
}

export function askToLogIn({ sink }: SourceRequest, login: ServerLogin, { goOn, giveUp }: AfterLogin): void {
  let isOver = false;
  const once = (act: () => void) => {
    if (isOver) return;
    isOver = true;
    act();
  };
  const end = (error: unknown) => once(() => giveUp(toGatewayError(error)));
  const missing = () => end(new LoginMissing(login.key, login.command));
  login.begin().then(({ address, done }) => {
    const message = `Log in to "${login.key}", so that this call can go on.`;
    const params = { mode: 'url', elicitationId: randomUUID(), message, url: address };
    sink.ask({
      method: 'elicitation/create',
      params: Buffer.from(JSON.stringify(params)),
      lasting: false,
      answer(result) {
        const { action } = JSON.parse(result.toString()) as { action?: unknown };
        if (action === 'accept') done.then(() => once(goOn), end);
        else missing();
      },
      refuse: missing,
      withdrawn() {},
    });
  }, end);
}
