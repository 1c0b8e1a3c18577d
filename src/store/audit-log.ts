/**
 * The audit on disk: one file per day, to which only whole lines are added. Lines are collected for a moment and
 * written by one writer in a single write, so the lines of several gateways in one folder never mix. Lines that cannot
 * be written yet are kept in memory, up to a limit.
 */
import { messageOf } from '../base/errors.ts';
import { DAY, dayOf, firstKept, openDayFile, removeOld } from './audit-file.ts';
import type { HeadKeeper } from './audit-heads.ts';
import { createSeals, SEAL_ROOM, type Seals } from './audit-seal.ts';

export interface AuditLogOptions {
  readonly folder: string;
  /** Days. Read each time, because the configuration may be replaced. */
  retention(): number;
  /** Names the chain of seals of this gateway. */
  readonly boot: string;
  /** Keeps the last seals. Absent: a missing end of a file is not found. */
  readonly heads?: HeadKeeper;
  /** Called with whole lines that were written. */
  written?(bytes: Buffer): void;
  /** The key of the seals; absent or null for none. */
  readonly key?: string | null;
  /** Called when writing begins to fail, with the problem, and with null when it works again. */
  report(problem: string | null): void;
  /** The line that says how many lines were lost. */
  lostLine(count: number): string;
  /** Called before a write, to add lines that were held back on the path of a call. */
  collect?(): void;
  readonly now?: () => number;
}

const PAUSE = 100;
const RETRY = 500;
/** Batches are this large because one write of 512 KiB takes a quarter of the time of eight writes of 64 KiB. */
const FULL = 512 * 1024;
/** Bytes that are kept while nothing can be written. */
const MOST = 8 * 1024 * 1024;
const SWEEP = 60 * 60 * 1000;
/** A disk that does not respond for so long counts as failing. `close` does not wait for it longer either. */
const PATIENCE = 5_000;
const NEWLINE = 0x0a;

/**
 * Lines are copied into bytes immediately. The garbage collector would move strings again and again until the write.
 */
interface Batch {
  readonly day: string;
  bytes: Buffer;
  size: number;
  lines: number;
}

const NOTHING: Buffer = Buffer.alloc(0);

export class AuditLog {
  /** The clock of all lines. */
  readonly now: () => number;
  readonly #options: AuditLogOptions;
  readonly #file;
  /** Null before the first write. */
  #seals: Seals | null = null;
  readonly #sweeping: NodeJS.Timeout;
  #ms = 0;
  #time = '';
  #batch: Batch = { day: '', bytes: NOTHING, size: 0, lines: 0 };
  /** The buffer of a written batch, to be used again. */
  #spare = NOTHING;
  /** Batches that are full or belong to an earlier day, oldest first. */
  #queue: Batch[] = [];
  /** Bytes in all batches. */
  #kept = 0;
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> | null = null;
  /** Whether lines were added during the current write. */
  #isWanted = false;
  #isFailing = false;
  #isClosed = false;
  /** Called when writing begins to fail. */
  readonly #givingUp = new Set<() => void>();
  #written = 0;
  #lost = 0;
  /** Lost lines that the file does not mention yet. */
  #unmentioned = 0;
  /** The day and retention of the last sweep. */
  #swept = '';
  /** When this process last wrote to the file of a day. */
  readonly #used = new Map<string, number>();

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.now = options.now ?? Date.now;
    this.#file = openDayFile(options.folder);
    this.#sweeping = setInterval(() => void this.#sweep(dayOf(this.now())), SWEEP);
    this.#sweeping.unref();
  }

  /** The time as ISO 8601, printed once per millisecond. The next line belongs to its day. */
  time(): string {
    return this.timeAt(this.now());
  }

  /** Like `time`, for a time that was read from the clock before. */
  timeAt(ms: number): string {
    if (ms === this.#ms) return this.#time;
    this.#ms = ms;
    this.#time = new Date(ms).toISOString();
    const day = this.#time.slice(0, 10);
    if (day !== this.#batch.day) this.#startBatch(day);
    return this.#time;
  }

  /** Adds a line: a JSON object in ASCII, without the line break. */
  write(line: string): void {
    if (this.#kept > MOST) {
      this.#lost++;
      this.#unmentioned++;
      return;
    }
    this.#append(line);
    this.hurry();
  }

  /** Like `write`, for one of many lines. Call `hurry` after the last one. */
  add(line: string): void {
    this.#append(line);
  }

  /** Schedules a write, because lines were added or held back. */
  hurry(): void {
    // A write in progress has already collected its lines; it checks again when it ends.
    if (this.#writing !== null) this.#isWanted = true;
    else if (this.#queue.length > 0 && !this.#isFailing) void this.#start();
    else if (this.#timer === null) this.#wait(PAUSE);
  }

  /** Whether lines cannot be written now. */
  get isFailing(): boolean {
    return this.#isFailing || this.#kept > MOST;
  }

  /** How many lines were written. */
  get written(): number {
    return this.#written;
  }

  /** How many lines were lost. */
  get lost(): number {
    return this.#lost;
  }

  /** Resolves when everything so far was written, or the attempt failed. */
  async flush(): Promise<void> {
    this.#options.collect?.();
    // A write in progress may have missed the last lines.
    await this.#writing;
    if (this.#kept > 0) await this.#start();
    if (this.#kept > 0 && !this.#isFailing) await this.#start();
  }

  /**
   * Writes everything so far, now. Resolves to true when it was written, and to false as soon as writing fails: a disk
   * that does not respond holds nobody up longer than that.
   */
  async put(): Promise<boolean> {
    if (this.isFailing) return false;
    let giveUp = () => {};
    const failed = new Promise<void>((resolve) => {
      giveUp = resolve;
    });
    this.#givingUp.add(giveUp);
    await Promise.race([this.flush(), failed]);
    this.#givingUp.delete(giveUp);
    return !this.isFailing;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    clearInterval(this.#sweeping);
    let late: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      late = setTimeout(resolve, PATIENCE);
    });
    await Promise.race([this.flush().then(() => this.#options.heads?.close()), patience]);
    clearTimeout(late);
    const left = this.#queue.reduce((sum, { lines }) => sum + lines, this.#unmentioned);
    if (left > 0) this.#options.report(`${left} lines could not be written before the gateway stopped`);
    this.#lost += left - this.#unmentioned;
    this.#queue = [];
    await this.#file.close();
  }

  #append(line: string): void {
    const size = line.length + 1;
    if (this.#batch.size + size + SEAL_ROOM > this.#batch.bytes.length) this.#makeRoom(size + SEAL_ROOM);
    const batch = this.#batch;
    batch.size += batch.bytes.write(line, batch.size, 'latin1');
    batch.bytes[batch.size++] = NEWLINE;
    batch.lines++;
    this.#kept += size;
    if (batch.size >= FULL) this.#startBatch(batch.day);
  }

  #startBatch(day: string): void {
    if (this.#batch.lines > 0) this.#queue.push(this.#batch);
    this.#batch = { day, bytes: NOTHING, size: 0, lines: 0 };
  }

  #makeRoom(size: number): void {
    this.#startBatch(this.#batch.day);
    const enough = Math.max(size, FULL + SEAL_ROOM);
    const isSpareEnough = this.#spare.length >= enough;
    this.#batch.bytes = isSpareEnough ? this.#spare : Buffer.allocUnsafeSlow(enough);
    if (isSpareEnough) this.#spare = NOTHING;
  }

  #wait(pause: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#writing !== null) this.#isWanted = true;
      else void this.#start();
    }, pause);
    this.#timer.unref();
  }

  /** One write at a time. */
  #start(): Promise<void> {
    if (this.#writing !== null) return this.#writing;
    const late = setTimeout(() => this.#fail(`the disk has not responded for ${PATIENCE / 1000} s`), PATIENCE);
    late.unref();
    this.#writing = this.#drain().finally(() => {
      clearTimeout(late);
      this.#writing = null;
      const isWanted = this.#kept > 0 || this.#isWanted;
      this.#isWanted = false;
      if (isWanted && this.#timer === null && !this.#isClosed) this.#wait(this.#isFailing ? RETRY : PAUSE);
    });
    return this.#writing;
  }

  async #drain(): Promise<void> {
    this.#options.collect?.();
    try {
      // The current batch is written once. Lines that are added during the write wait for the next one, or a busy
      // gateway would write line by line. During an outage the last batch keeps growing, because every batch takes the
      // memory of many lines.
      let hasTakenLast = false;
      for (;;) {
        if (this.#queue.length === 0 && !hasTakenLast) {
          hasTakenLast = true;
          this.#startBatch(this.#batch.day);
        }
        const next = this.#queue[0];
        if (next === undefined) break;
        await this.#writeBatch(next);
        this.#queue.shift();
        if (next.bytes.length === FULL + SEAL_ROOM) this.#spare = next.bytes;
        if (this.#unmentioned > 0 && this.#kept < MOST / 2) this.#mentionLost();
      }
      if (this.#isFailing) this.#options.report(null);
      this.#isFailing = false;
    } catch (error) {
      this.#fail(messageOf(error));
    }
  }

  #fail(problem: string): void {
    if (!this.#isFailing) this.#options.report(problem);
    this.#isFailing = true;
    for (const giveUp of this.#givingUp) giveUp();
  }

  /** Adds a line that says how many lines were lost. */
  #mentionLost(): void {
    const count = this.#unmentioned;
    this.#unmentioned = 0;
    this.time();
    this.#append(this.#options.lostLine(count));
  }

  async #writeBatch(batch: Batch): Promise<void> {
    await this.#sweep(batch.day);
    await this.#file.use(batch.day);
    this.#used.set(batch.day, performance.now());
    const { boot, heads, key } = this.#options;
    this.#seals ??= createSeals(boot, await heads?.begin(), key);
    const { seal, end } = this.#seals.seal(batch.bytes, batch.size, batch.lines);
    const written = await this.#file.append(batch.bytes.subarray(0, end), batch.lines);
    this.#written += written;
    if (written === batch.lines) {
      this.#kept -= batch.size;
      this.#seals.taken(seal);
      heads?.wrote(batch.day, seal);
      this.#options.written?.(batch.bytes.subarray(0, end));
      return;
    }
    // The whole batch is tried again, with the same seal.
    throw new Error('the disk is full');
  }

  async #sweep(day: string): Promise<void> {
    const days = this.#options.retention();
    if (this.#swept === `${day} ${days}`) return;
    this.#swept = `${day} ${days}`;
    // What was written a moment ago is not old, also if the clock was wrong and has been set.
    const isRecent = (used: number) => performance.now() - used < days * DAY;
    const recent = [...this.#used].filter(([, used]) => isRecent(used)).map(([name]) => name);
    const first = [firstKept(days, this.now()), ...recent].sort()[0]!;
    await removeOld(this.#options.folder, first);
    this.#options.heads?.removed(first);
  }
}
