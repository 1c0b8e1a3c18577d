/**
 * Entries with mistakes. A server or toolset that is written wrongly is left out and reported, and everything else is
 * served. A mistake anywhere else refuses the whole file, because without a policy or a credential more would be open
 * than its author meant.
 */
import { isObject } from '../base/objects.ts';
import { type ConfigDocument, type Issue, issueTexts, type LineOf, type Path, pathText } from './issues.ts';
import type { Launch } from './launch.ts';

/** An entry that was left out of the configuration, and why. */
export interface BrokenEntry {
  readonly section: 'servers' | 'toolsets';
  /** What its server would be called in logs; the name of a toolset. */
  readonly key: string;
  /** A mistake in the entry, or nobody has trusted it yet. */
  readonly cause: 'mistake' | 'untrusted';
  /** What is wrong and where: a line for each mistake. What to do to trust it. */
  readonly problem: string;
  /** What can still be told about a server; null for a toolset. */
  readonly server: BrokenServer | null;
  /** Whether an earlier version of it is in force and stays so. */
  readonly isKept: boolean;
}

export interface BrokenServer {
  readonly namespace: string;
  readonly kind: Exclude<Launch['kind'], 'inline'>;
  readonly required: boolean;
  /** How many servers of the same kind, programs and addresses or folders, are listed before it. */
  readonly place: number;
}

/** A server's entry that the schema refused. */
export interface BadEntry {
  readonly path: Path;
  /** The entry's name if servers are a map. */
  readonly name: string | null;
  readonly written: unknown;
  readonly issues: readonly Issue[];
}

/** A broken entry while the file is read: its issues still have to be put into words. */
export interface BrokenDraft extends Omit<BrokenEntry, 'cause' | 'problem' | 'isKept'> {
  readonly issues: readonly Issue[];
}

/** The sections whose entries can be left out alone. */
const SECTIONS: Readonly<Record<string, BrokenEntry['section']>> = {
  servers: 'servers',
  mcpServers: 'servers',
  toolsets: 'toolsets',
};

export interface SplitIssues {
  /** Issues inside of single entries, by the path of the entry. */
  readonly entries: ReadonlyMap<string, { readonly path: Path; readonly issues: readonly Issue[] }>;
  /** All others. */
  readonly others: readonly Issue[];
}

export function splitIssues(issues: readonly Issue[]): SplitIssues {
  const entries = new Map<string, { path: Path; issues: Issue[] }>();
  const others: Issue[] = [];
  for (const issue of issues) {
    const [section, entry] = issue.path;
    if (entry === undefined || issue.isMisplaced === true || !Object.hasOwn(SECTIONS, section!)) {
      others.push(issue);
      continue;
    }
    const path = [section!, entry];
    const known = entries.get(pathText(path)) ?? { path, issues: [] };
    known.issues.push(issue);
    entries.set(pathText(path), known);
  }
  return { entries, others };
}

export function sectionOf([section]: Path): BrokenEntry['section'] {
  return SECTIONS[section!]!;
}

/** The value without the entries at these paths. Positions in lists change. */
export function withoutEntries(value: unknown, paths: readonly Path[]): unknown {
  if (!isObject(value)) return value;
  const left = (section: string, kept: unknown) => {
    const gone = new Set(paths.filter((path) => path[0] === section).map((path) => path[1]));
    if (Array.isArray(kept)) return kept.filter((_, i) => !gone.has(i));
    return isObject(kept) ? Object.fromEntries(Object.entries(kept).filter(([name]) => !gone.has(name))) : kept;
  };
  return Object.fromEntries(Object.entries(value).map(([section, kept]) => [section, left(section, kept)]));
}

/** What a server's entry says of itself, as far as that can be read. */
export function describeBroken(written: unknown, name: string | null): Omit<BrokenServer, 'place'> {
  const { namespace, required, url, folder } = isObject(written) ? written : {};
  return {
    namespace: typeof namespace === 'string' ? namespace : (name ?? ''),
    kind: url !== undefined ? 'http' : folder !== undefined ? 'folder' : 'stdio',
    required: required === true,
  };
}

/** `redact` removes secrets. */
export function brokenEntry(
  { issues, ...draft }: BrokenDraft,
  document: ConfigDocument,
  lineOf: LineOf,
  redact: (text: string) => string,
): BrokenEntry {
  return {
    ...draft,
    cause: 'mistake',
    problem: redact(issueTexts(document, issues, lineOf).join('\n')),
    isKept: false,
  };
}
