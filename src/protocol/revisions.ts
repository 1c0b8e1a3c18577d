/** The revisions of the protocol that are spoken with sessions, newest first. */
export const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

export type Revision = (typeof REVISIONS)[number];

export const LATEST_REVISION: Revision = REVISIONS[0];

export function isRevision(text: unknown): text is Revision {
  return (REVISIONS as readonly unknown[]).includes(text);
}

/** The revision to answer `initialize` with: the client's own where it is known, else our newest. */
export function negotiate(wanted: unknown): Revision {
  return isRevision(wanted) ? wanted : LATEST_REVISION;
}

/** Only 2025-03-26 and earlier let several messages travel in one array. */
export function allowsBatch(revision: Revision): boolean {
  return revision <= '2025-03-26';
}
