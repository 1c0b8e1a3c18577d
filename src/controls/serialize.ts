/** Control tools at work: what is changed for one owner is changed by one of them at a time. */
import { GatewayError, toGatewayError } from '../base/errors.ts';
import type { Outcome } from './control.ts';

export interface ControlQueue {
  /**
   * Runs a control tool for an owner, at once where none is running for it. Otherwise it waits for that, but for one that
   * would replace what is just being set up.
   */
  run(owner: object, name: string, work: () => Outcome | Promise<Outcome>, done: Done): void;
}

export interface Done {
  outcome(outcome: Outcome): void;
  failed(error: GatewayError): void;
}

export function createControlQueue(): ControlQueue {
  const running = new WeakMap<object, Promise<void>>();

  function start(owner: object, work: () => Outcome | Promise<Outcome>, { outcome, failed }: Done): void {
    let result: Outcome | Promise<Outcome>;
    try {
      result = work();
    } catch (error) {
      failed(toGatewayError(error));
      return;
    }
    if (!(result instanceof Promise)) {
      outcome(result);
      return;
    }
    // It is over before anybody is told: whoever is may come with the next one at once.
    const over = () => {
      if (running.get(owner) === finished) running.delete(owner);
    };
    const finished: Promise<void> = result
      .finally(over)
      .then(outcome)
      .catch((error: unknown) => failed(toGatewayError(error)));
    running.set(owner, finished);
  }

  return {
    run(owner, name, work, done) {
      const before = running.get(owner);
      if (before === undefined) start(owner, work, done);
      else if (name === 'equip-toolset')
        done.failed(
          new GatewayError('source_busy', 'Another toolset operation is in progress. Wait for it and try again.'),
        );
      else {
        const next: Promise<void> = before.then(() => start(owner, work, done));
        running.set(owner, next);
      }
    },
  };
}
