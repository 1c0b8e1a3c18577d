/** The rows of the matrix: what is checked, where it is impossible, and why. */
import type { Era } from '../../src/protocol/revisions.ts';
import * as calls from './checks/calls.ts';
import * as lists from './checks/lists.ts';
import * as questions from './checks/questions.ts';
import { replay } from './checks/replay.ts';
import { tasks } from './checks/tasks.ts';
import type { MatrixClient } from './clients.ts';
import { notYet } from './not-yet.ts';
import { type Cell, sides, titleOf } from './sides.ts';

export interface Feature {
  readonly name: string;
  check(subject: MatrixClient, cell: Cell): Promise<void>;
}

export const features: readonly Feature[] = [
  { name: 'Tools: list', check: lists.toolsList },
  { name: 'Tools: call', check: calls.call },
  { name: 'Tools: structured output', check: calls.structured },
  { name: 'Tools: error result', check: calls.toolError },
  { name: 'Errors of the protocol', check: calls.protocolError },
  { name: 'Progress', check: calls.progress },
  { name: 'Cancellation', check: calls.cancellation },
  { name: 'Log messages from a level on', check: calls.logging },
  { name: 'Resources: list', check: lists.resourcesList },
  { name: 'Resources: read, text and binary', check: lists.resourcesRead },
  { name: 'Resources: templates', check: lists.templates },
  { name: 'Resources: subscribe and unsubscribe', check: lists.subscription },
  { name: 'Prompts: list', check: lists.promptsList },
  { name: 'Prompts: get', check: lists.promptsGet },
  { name: 'Completion', check: lists.completion },
  { name: 'List changed: tools', check: lists.listChanged('tools') },
  { name: 'List changed: resources', check: lists.listChanged('resources') },
  { name: 'List changed: prompts', check: lists.listChanged('prompts') },
  { name: 'Pages: of a server', check: lists.serverPages },
  { name: 'Pages: for a client', check: lists.clientPages },
  { name: 'Instructions', check: lists.instructions },
  { name: 'Ping', check: calls.ping },
  { name: 'Elicitation: form', check: questions.elicitForm },
  { name: 'Elicitation: URL', check: questions.elicitUrl },
  { name: 'Elicitation: URL done', check: questions.elicitDone },
  { name: 'Sampling', check: questions.sample },
  { name: 'Roots', check: questions.roots },
  { name: 'Several questions in one call', check: questions.several },
  { name: 'A client that cannot be asked', check: questions.unable },
  { name: 'Tasks', check: tasks },
  { name: 'Replay of a dropped stream', check: replay },
];

interface Impossible {
  readonly feature: string;
  where(cell: Cell): boolean;
  readonly reason: string;
}

/** What the specification makes impossible. */
export const impossible: readonly Impossible[] = [
  {
    feature: 'Ping',
    where: ({ client }) => client.era === 'modern',
    reason: '2026-07-28 has no `ping`.',
  },
  {
    feature: 'Elicitation: URL done',
    where: ({ client, upstream }) => client.era === 'modern' || upstream.era === 'modern',
    reason: '2026-07-28 has no `notifications/elicitation/complete`: the client makes its request again.',
  },
  {
    feature: 'Tasks',
    where: ({ client, upstream }) => client.era !== upstream.era,
    reason:
      'The tasks of 2025-11-25 are asked for by the client, those of 2026-07-28 are an extension by which the server decides; their messages differ, and neither has the other’s states.',
  },
  {
    feature: 'Replay of a dropped stream',
    where: ({ client }) => client.era === 'modern',
    reason: '2026-07-28 has no resumption: a client whose stream breaks makes its request again.',
  },
  {
    feature: 'Replay of a dropped stream',
    where: ({ client }) => client.transport === 'stdio',
    reason: 'On stdio there are no streams that could be dropped.',
  },
  {
    feature: 'Replay of a dropped stream',
    where: ({ client }) => client.transport === 'sse',
    reason: 'HTTP+SSE (2024-11-05) has no resumption.',
  },
];

export type Verdict = { readonly kind: 'yes' } | { readonly kind: 'impossible' | 'not yet'; readonly reason: string };

export function verdictOn({ name }: Feature, cell: Cell): Verdict {
  const never = impossible.find(({ feature, where }) => feature === name && where(cell));
  if (never !== undefined) return { kind: 'impossible', reason: never.reason };
  const later = notYet[name] ?? notYet[titleOf(cell.client)];
  return later === undefined ? { kind: 'yes' } : { kind: 'not yet', reason: later };
}

/** All cells for a pair of eras. */
export function cellsOf(clientEra: Era, upstreamEra: Era): Cell[] {
  const of = (era: Era) => sides.filter((side) => side.era === era);
  return of(clientEra).flatMap((client) => of(upstreamEra).map((upstream) => ({ client, upstream })));
}
