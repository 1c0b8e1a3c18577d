/**
 * The revisions of the protocol, newest first, and the two eras they belong to (the words are the specification's). Up to 2025-11-25 a client opens a session
 * with `initialize`; since 2026-07-28 each request stands for itself.
 */
export type Era = 'legacy' | 'modern';

export const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

/** The revision without sessions. */
export const MODERN_REVISION = '2026-07-28';

export const ALL_REVISIONS: readonly string[] = [MODERN_REVISION, ...REVISIONS];

export type Revision = (typeof REVISIONS)[number];

export const LATEST_REVISION: Revision = REVISIONS[0];

export function isRevision(text: unknown): text is Revision {
  return (REVISIONS as readonly unknown[]).includes(text);
}

/** The revision to answer `initialize` with: the client's own where it may be spoken, else the newest. Null where there is none. */
export function negotiate(wanted: unknown, spoken: readonly string[] = ALL_REVISIONS): Revision | null {
  if (isRevision(wanted) && spoken.includes(wanted)) return wanted;
  return REVISIONS.find((revision) => spoken.includes(revision)) ?? null;
}

/** Whether a text names a revision, known or not, of the era without sessions. Revisions are dates. */
export function isModern(revision: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(revision) && revision >= MODERN_REVISION;
}

/** Only 2025-03-26 and earlier let several messages travel in one array. */
export function allowsBatch(revision: Revision): boolean {
  return revision <= '2025-03-26';
}

/** Since 2025-06-18 every client reads event streams where it could get plain JSON; before, it says so. */
export function readsStreams(revision: Revision): boolean {
  return revision >= '2025-06-18';
}

/** Since 2025-11-25 an event may come without a message, for its id alone. */
export function readsEmptyEvents(revision: Revision): boolean {
  return revision >= '2025-11-25';
}
