/** A login that the gateway itself starts, because the caller of a tool can be sent to an address. */
import { type CallbackPage, openCallback } from './callback.ts';
import type { LoginChallenge } from './challenge.ts';
import { grantProblem, startLogin } from './grants.ts';
import type { Login } from './record.ts';
import type { GrantContext } from './token.ts';

export interface AskedLogin {
  /** What the person opens. */
  readonly address: string;
  /** Resolves when somebody is logged in. Rejects if nobody does so in time. */
  readonly done: Promise<void>;
}

/** How long a person may take. */
const PATIENCE = 5 * 60_000;

/** `save` keeps the login; `key` is the name of the server. */
export async function beginLogin(
  key: string,
  context: GrantContext,
  challenge: LoginChallenge | null,
  known: Login | null,
  save: (login: Login) => Promise<void>,
): Promise<AskedLogin> {
  const { callbackPort } = context.settings;
  const callback = await openCallback(callbackPort ?? portOf(known), callbackPort === undefined);
  try {
    const started = await startLogin(context, challenge, known, callback.redirect);
    const done = new Promise<void>((resolve, reject) => {
      const late = () => reject(new Error(`nobody logged in to "${key}" within ${PATIENCE / 60_000} minutes`));
      const timer = setTimeout(late, PATIENCE);
      timer.unref();
      callback.handle = async (parameters): Promise<CallbackPage> => {
        const page = await returned(key, started, parameters, save);
        if (page === null) return OTHER;
        clearTimeout(timer);
        if (page.isFailure) reject(new Error(page.text));
        else resolve();
        return page;
      };
    }).finally(() => callback.close());
    return { address: started.address, done };
  } catch (error) {
    await callback.close();
    throw error;
  }
}

const OTHER = { title: 'Another login', text: 'This is not the login that was started here.', isFailure: true };

/** The port of an earlier login, which the client is registered with; 0 for any. */
export function portOf(known: Login | null): number {
  return known?.redirect == null ? 0 : Number(new URL(known.redirect).port);
}

/** The page for a browser that has returned; null if it comes from another login. */
async function returned(
  key: string,
  started: Awaited<ReturnType<typeof startLogin>>,
  parameters: URLSearchParams,
  save: (login: Login) => Promise<void>,
): Promise<CallbackPage | null> {
  // A page on the internet could send a browser here, with a code of its own.
  if (parameters.get('state') !== started.state) return null;
  try {
    await save(await started.finish(parameters));
    return { title: 'Logged in', text: `Toolgate can use ${key} now. You can close this window.`, isFailure: false };
  } catch (error) {
    return { title: 'Not logged in', text: `Server "${key}" ${grantProblem(error)}.`, isFailure: true };
  }
}
