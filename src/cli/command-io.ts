/**
 * What a command uses of its process, as a value. The program passes its own process; a test passes others, so that it can run
 * commands with streams, environments and folders of their own.
 */
import type { Readable, Writable } from 'node:stream';
import type { Spawn } from '../sources/spawn.ts';

export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  cwd(): string;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Screen;
  readonly stderr: Screen;
  on: Listen;
  once: Listen;
  off: Listen;
  /** Ends the process at once, with this exit code. */
  exit(code: number): void;
  /** How processes of servers are started, if not as usual. */
  readonly spawn?: Spawn;
  /** Milliseconds that an answer waits at most until its client has listed again, if not as usual. */
  readonly listWait?: number;
}

/** A stream that is a terminal or a pipe. */
export type Screen = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };

export type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

interface Listen {
  (event: Signal, listener: (signal: NodeJS.Signals) => void): unknown;
  (event: 'exit', listener: () => void): unknown;
}
