/**
 * Calls that still have to be written to the audit, stored as plain numbers and existing strings. Their lines are
 * printed in batches. Printing each call on its own takes several times as long, because the printing code has left the
 * processor's cache by then.
 */
import { OUTCOMES } from '../calls/outcome.ts';
import type { AuditLog } from '../store/audit-log.ts';
import { printMs, type RecordIds } from './audit-line.ts';

/** The maximum number of pending calls. When it is reached, they are printed at once. */
const MOST = 256;
const FIELDS = 6;

export class PendingCalls {
  readonly numbers = new Float64Array(MOST * FIELDS);
  readonly callers: string[] = new Array<string>(MOST).fill('');
  readonly items: string[] = new Array<string>(MOST).fill('');
  size = 0;

  get isFull(): boolean {
    return this.size === MOST;
  }

  /** `caller` and `item` are parts of the line, in ASCII. */
  add(
    time: number,
    caller: string,
    item: string,
    request: number,
    outcome: number,
    ms: number,
    bytesIn: number,
    bytesOut: number,
  ): void {
    const { numbers, size } = this;
    const at = size * FIELDS;
    numbers[at] = time;
    numbers[at + 1] = request;
    numbers[at + 2] = outcome;
    numbers[at + 3] = ms;
    numbers[at + 4] = bytesIn;
    numbers[at + 5] = bytesOut;
    this.callers[size] = caller;
    this.items[size] = item;
    this.size++;
  }

  /** Prints all pending calls. */
  print(log: AuditLog, ids: RecordIds): void {
    const { numbers, callers, items, size } = this;
    this.size = 0;
    // Many calls share a millisecond, and most share a few callers and items. So these parts are built once and reused.
    let moment = Number.NaN;
    let opening = '';
    let caller = '';
    let item = '';
    let subject = '';
    for (let i = 0; i < size; i++) {
      const at = i * FIELDS;
      if (numbers[at]! !== moment) {
        moment = numbers[at]!;
        opening = `{"time":"${log.timeAt(moment)}","id":"${ids.boot}-`;
      }
      if (callers[i]! !== caller || items[i]! !== item) {
        caller = callers[i]!;
        item = items[i]!;
        subject = caller + item;
      }
      log.add(
        `${opening}${ids.next()}","request":${numbers[at + 1]!}${subject}` +
          `${STATUSES[numbers[at + 2]!]!}${printMs(numbers[at + 3]!)},"bytes_in":${printSize(numbers[at + 4]!)},"bytes_out":${printSize(numbers[at + 5]!)}}`,
      );
    }
  }
}

const STATUSES = OUTCOMES.map((outcome) => `,"status":"${outcome}","ms":`);

// Cached as strings: the same sizes occur again and again, and printing a number is slow.
const sizes: string[] = [];
const MOST_SIZES = 4_096;

function printSize(size: number): string {
  if (size >= MOST_SIZES) return String(size);
  sizes[size] ??= String(size);
  return sizes[size];
}
