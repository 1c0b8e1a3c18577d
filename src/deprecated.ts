/** Former names of what `index.ts` exports, kept so that programs that use them still compile. */
import type { AuditMetrics } from './observe/audit.ts';
import type { TallyMetrics } from './observe/histogram.ts';
import type { AgentMetrics, CallMetrics, EntryMetrics } from './observe/metrics.ts';
import { type ApprovalRequest, readApprovalRequests } from './store/approval-board.ts';
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
