/**
 * The revisions of the protocol, newest first, and their two eras, as the specification names them. In the legacy era,
 * up to 2025-11-25, a client opens a session with `initialize`. In the modern era, since 2026-07-28, each request
 * stands alone.
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

/** The revision that answers `initialize`: the client's own if allowed, else the newest. Null if none is allowed. */
export function negotiate(wanted: unknown, spoken: readonly string[] = ALL_REVISIONS): Revision | null {
  if (isRevision(wanted) && spoken.includes(wanted)) return wanted;
  return REVISIONS.find((revision) => spoken.includes(revision)) ?? null;
}

/** Whether a text names a revision of the modern era, known to us or not. Revisions are dates. */
export function isModern(revision: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(revision) && revision >= MODERN_REVISION;
}

/** Up to 2025-03-26 several messages may be sent in one array. */
export function allowsBatch(revision: Revision): boolean {
  return revision <= '2025-03-26';
}

/**
 * Since 2025-06-18 every client must accept an event stream in place of plain JSON. Before that, it has to declare so.
 */
export function readsStreams(revision: Revision): boolean {
  return revision >= '2025-06-18';
}

/** Since 2025-11-25 an event may have no message, only an id. */
export function readsEmptyEvents(revision: Revision): boolean {
  return revision >= '2025-11-25';
}
