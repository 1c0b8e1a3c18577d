/**
 * The ids by which clients know tasks. Each names the server and the server's own id, and is sealed: it is good for the
 * agent that started the task, in the era in which it was started, and for nobody else.
 */
import { GatewayError } from '../../base/errors.ts';
import type { Era } from '../../protocol/revisions.ts';
import { createSeal } from '../seal.ts';

/** A task where it lives. */
export interface TaskName {
  readonly sourceId: number;
  /** As its server calls it. */
  readonly id: string;
}

export interface TaskNames {
  close(task: TaskName, agent: string, era: Era): string;
  /** Null for what is no task of this agent in this era. */
  open(text: string, agent: string, era: Era): TaskName | null;
}

export function createTaskNames(): TaskNames {
  const seal = createSeal();
  return {
    close: ({ sourceId, id }, agent, era) =>
      seal.close(`${sourceId}.${Buffer.from(id).toString('base64url')}`, agent, era),
    open(text, agent, era) {
      const named = seal.open(text, agent, era)?.split('.');
      if (named === undefined) return null;
      return { sourceId: Number(named[0]), id: Buffer.from(named[1] ?? '', 'base64url').toString() };
    },
  };
}

/** The same for every reason, so that nobody learns of the tasks of others. */
export function taskUnknown(): GatewayError {
  return new GatewayError(
    'params_invalid',
    'The task is unknown: it may be over and forgotten, or never have been yours. Check "taskId", or make the call again.',
  );
}
