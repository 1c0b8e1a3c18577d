/** A door for programs in the same process. They list and call without a protocol in between. */
import { findTool } from '../access/find.ts';
import { GatewayError } from '../base/errors.ts';
import type { Kind } from '../catalog/item.ts';
import { ASKS, legacyResult } from '../protocol/bridge.ts';
import { READS_AT_ONCE } from '../protocol/contract.ts';
import { NO_ABILITIES } from '../protocol/envelope.ts';
import { toBytes } from '../protocol/json.ts';
import { join } from '../protocol/parts.ts';
import { unanswerable } from '../protocol/question.ts';
import { readMessage } from '../protocol/read.ts';
import { type Caller, type CallerOptions, FULL_SCOPE } from './caller.ts';
import { operatorIdentity, programIdentity } from './identity.ts';
import { DRY_RUN } from './macros/run.ts';
import type { Pipeline } from './pipeline.ts';
import { parseObject, relayed } from './relayed-error.ts';

/** What a door in this process needs from its gateway. */
export interface LocalGateway {
  join(options: CallerOptions): Caller;
  readonly pipeline: Pipeline;
  readonly opening: Promise<void> | null;
}

/** The progress of a call. */
export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** Options for a call from this process. */
export interface LocalCallOptions {
  /** Called with the progress of the call. */
  readonly onProgress?: (progress: Progress) => void;
  /** Aborting it cancels the call. */
  readonly signal?: AbortSignal;
  /** For macros: nothing is called, and the result lists the calls that would be made. */
  readonly dryRun?: boolean;
}

/** A door for programs in this process. */
export interface LocalDoor {
  /** @internal */
  readonly caller: Caller;
  /** The listed definitions as the servers send them, under their exposed names. */
  list(kind: Kind): Promise<unknown[]>;
  /** Returns the server's result as JSON bytes. Toolgate's own errors are thrown. */
  callTool(name: string, args: unknown, options?: LocalCallOptions): Promise<Buffer>;
  close(): void;
}

/**
 * With an agent's name, the agent's policy applies. Without one, the door belongs to the operator, who is exempt from
 * policies.
 */
export function openLocalDoor(
  gateway: LocalGateway,
  selection: 'own' | 'default' | 'all' = 'own',
  agent: string | null = null,
): LocalDoor {
  const caller = gateway.join({
    identity: agent === null ? operatorIdentity() : programIdentity(agent),
    scope: { ...FULL_SCOPE, selection },
    door: 'local',
  });
  let lastId = 0;
  return {
    caller,
    async list(kind) {
      await gateway.opening;
      const result = JSON.parse(caller.list(kind, 'modern').toString()) as Record<string, unknown[]>;
      return Object.values(result)[0] ?? [];
    },
    callTool(name, args, options = {}) {
      if (options.dryRun === true) requireMacro(caller, name);
      const meta = {
        ...(options.onProgress !== undefined && { progressToken: 1 }),
        ...(options.dryRun === true && { [DRY_RUN]: true }),
      };
      const more = Object.keys(meta).length === 0 ? {} : { _meta: meta };
      const id = ++lastId;
      const message = readMessage(
        toBytes({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, ...more } }),
      );
      const { signal } = options;
      let cancel = () => {};
      return new Promise<Buffer>((resolve, reject) => {
        const call = gateway.pipeline.create(caller, message, {
          ...NO_ABILITIES,
          ...READS_AT_ONCE,
          owner: caller,
          awaySince: null,
          result(result, era) {
            const plain = era === 'modern' ? legacyResult(result, false) : join(result);
            if (plain instanceof GatewayError) reject(plain);
            else if (plain === ASKS)
              reject(
                new GatewayError(
                  'capability_missing',
                  `The tool "${name}" asked a question, and a program cannot answer it.`,
                ),
              );
            else resolve(plain);
          },
          error: (error, era) => reject(relayed(error, era)),
          fail: reject,
          notify: (bytes) => options.onProgress?.(parseObject(bytes).params as Progress),
          ask: ({ method, refuse }) => refuse(unanswerable(method, 'the caller is a program')),
        });
        cancel = () => {
          call.cancel('cancelled by the caller');
          reject(new GatewayError('cancelled', `The call of "${name}" was cancelled.`));
        };
        call.start();
        if (signal?.aborted === true) cancel();
        else signal?.addEventListener('abort', cancel, { once: true });
      }).finally(() => signal?.removeEventListener('abort', cancel));
    },
    close: () => caller.leave(),
  };
}

/** Only a macro can run dry. Any other tool would really be called. */
function requireMacro(caller: Caller, name: string): void {
  if (findTool(caller.view(), name).item.uses === undefined)
    throw new GatewayError('params_invalid', `"${name}" is not a macro, and only macros have a dry run.`);
}
