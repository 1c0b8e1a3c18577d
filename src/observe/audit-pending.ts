/**
 * Calls that are to be written down, as bare numbers and texts that are there anyway. Lines are made of them many at a time:
 * a call that comes alone would otherwise pay for code that is not in the processor's memory any more, several times over.
 */
import { OUTCOMES } from '../calls/outcome.ts';
import type { AuditLog } from '../store/audit-log.ts';
import { printMs } from './audit-line.ts';

/** How many wait at most; then they are printed at once. */
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

  /** `caller` and `item` are pieces of the line, in ASCII. */
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

  /** Prints all of them; `next` gives each line its number. */
  print(log: AuditLog, boot: string, next: () => number): void {
    const { numbers, callers, items, size } = this;
    this.size = 0;
    // Many of a moment, and mostly of few callers and items: what they have in common is put together once.
    let moment = Number.NaN;
    let opening = '';
    let caller = '';
    let item = '';
    let subject = '';
    for (let i = 0; i < size; i++) {
      const at = i * FIELDS;
      if (numbers[at]! !== moment) {
        moment = numbers[at]!;
        opening = `{"time":"${log.timeAt(moment)}","id":"${boot}-`;
      }
      if (callers[i]! !== caller || items[i]! !== item) {
        caller = callers[i]!;
        item = items[i]!;
        subject = caller + item;
      }
      log.add(
        `${opening}${next()}","request":${numbers[at + 1]!}${subject}` +
          `${STATUSES[numbers[at + 2]!]!}${printMs(numbers[at + 3]!)},"bytes_in":${printSize(numbers[at + 4]!)},"bytes_out":${printSize(numbers[at + 5]!)}}`,
      );
    }
  }
}

const STATUSES = OUTCOMES.map((outcome) => `,"status":"${outcome}","ms":`);

// Sizes come again and again, and printing a number is dear.
const sizes: string[] = [];
const MOST_SIZES = 4_096;

function printSize(size: number): string {
  if (size >= MOST_SIZES) return String(size);
  sizes[size] ??= String(size);
  return sizes[size];
}
