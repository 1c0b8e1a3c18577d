/** Former names of what `index.ts` exports, kept so that programs that use them still compile. */
import type { Toolset } from './access/toolset.ts';
import { createIdentity, type Identity, type IdentityOptions } from './calls/identity.ts';
import type { Task } from './config/task.ts';
import type { AuditMetrics } from './observe/audit.ts';
import type { TallyMetrics } from './observe/histogram.ts';
import type { AgentMetrics, CallMetrics, EntryMetrics } from './observe/metrics.ts';
import type { ApprovalRequest } from './store/approval-files.ts';
import { readApprovalRequests } from './store/decide-approval.ts';
import type { LibraryToolset, ToolsetLibrary } from './store/toolset-library.ts';

/** @deprecated Use `AgentMetrics`. */
export type AgentFigures = AgentMetrics;
/** @deprecated Use `AuditMetrics`. */
export type AuditFigures = AuditMetrics;
/** @deprecated Use `EntryMetrics`. */
export type EntryFigures = EntryMetrics;
/** @deprecated Use `CallMetrics`. */
export type Figures = CallMetrics;
/** @deprecated Use `ApprovalRequest`. */
export type Petition = ApprovalRequest;
/** @deprecated Use `readApprovalRequests`. */
export const readPetitions: typeof readApprovalRequests = readApprovalRequests;
/** @deprecated Use `ToolsetLibrary`. */
export type Shelf = ToolsetLibrary;
/** @deprecated Use `LibraryToolset`. */
export type ShelvedToolset = LibraryToolset;
/** @deprecated Use `TallyMetrics`. */
export type TallyFigures = TallyMetrics;
/** @deprecated Use `Identity`. */
export interface Visitor extends Identity {
  /** Always null. */
  readonly toolset: Toolset | null;
  /** Always null. */
  readonly namespace: string | null;
  /** Always null. */
  readonly task: Task | null;
}
/** @deprecated Use `IdentityOptions`. */
export type VisitorOptions = IdentityOptions;
/** @deprecated Use `createIdentity`. */
export function createVisitor(agent: string, options: VisitorOptions = {}): Visitor {
  return { ...createIdentity(agent, options), toolset: null, namespace: null, task: null };
}
