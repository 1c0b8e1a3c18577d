/**
 * The audit on disk: one file for each day, to which whole lines are added and nothing else. Lines are collected for a
 * moment and written by one writer in one piece, so those of several gateways in one folder never mix. What cannot be
 * written is kept, within bounds, until it can.
 */
import { messageOf } from '../base/errors.ts';
import { openDayFile, removeOld } from './audit-file.ts';
import { createSeals, ROOM } from './audit-seal.ts';

export interface AuditLog {
  /** The time as ISO 8601, made once for each millisecond. The next line belongs to its day. */
  time(): string;
  /** The clock that lines go by. */
  now(): number;
  /** The same for a time that was taken from the clock before. */
  timeAt(ms: number): string;
  /** Adds an object as JSON in ASCII, without a line break. */
  write(line: string): void;
  /** The same for one of many: `hurry` has to follow. */
  add(line: string): void;
  /** Something was added, or held back: it is to be written before long. */
  hurry(): void;
  /** Whether lines cannot be written at present. */
  readonly isFailing: boolean;
  /** How many lines were written, and how many were lost. */
  readonly written: number;
  readonly lost: number;
  /** Resolves when everything up to here is written, or could not be. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

export interface AuditLogOptions {
  readonly folder: string;
  /** Days; asked each time, because the configuration may be replaced. */
  retention(): number;
  /** Names the chain of seals of this gateway. */
  readonly boot: string;
  /** It begins, or ceases, to be impossible to write. */
  told(problem: string | null): void;
  /** The line that says how many there are not. */
  lostLine(count: number): string;
  /** Adds what was held back: there is time now. */
  collect?(): void;
  readonly now?: () => number;
}

const PAUSE = 100;
const RETRY = 500;
/** Writing half a megabyte takes a quarter of the time that eight times an eighth of it would. */
const FULL = 512 * 1024;
/** Bytes that are kept while nothing can be written. */
const MOST = 8 * 1024 * 1024;
const SWEEP = 60 * 60 * 1000;
/** How long the end of a gateway waits for a disk that does not answer. */
const PATIENCE = 5_000;

/** Lines go into their bytes at once: kept as text, they would be moved about by the garbage collector until they are written. */
interface Batch {
  readonly day: string;
  bytes: Buffer;
  size: number;
  lines: number;
}

const NOTHING: Buffer = Buffer.alloc(0);

export function openAuditLog(options: AuditLogOptions): AuditLog {
  const { folder, retention, told, lostLine, collect = () => {}, now = Date.now } = options;
  const file = openDayFile(folder);
  const seals = createSeals(options.boot);
  let ms = 0;
  let time = '';
  let batch: Batch = { day: '', bytes: NOTHING, size: 0, lines: 0 };
  /** The memory of a batch that was written, for the next one. */
  let spare = NOTHING;
  /** Batches that are full or of an earlier day, oldest first. */
  let queue: Batch[] = [];
  let kept = 0;
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> | null = null;
  /** Whether something came while it was written. */
  let isWanted = false;
  let failing = false;
  let closed = false;
  let written = 0;
  let lost = 0;
  /** Of those that were lost, how many the file does not say yet. */
  let unsaid = 0;
  /** On which day, and for how many. */
  let swept = '';

  function timeAt(at: number): string {
    if (at === ms) return time;
    ms = at;
    time = new Date(at).toISOString();
    const day = time.slice(0, 10);
    if (day !== batch.day) startBatch(day);
    return time;
  }

  function startBatch(day: string): void {
    if (batch.lines > 0) queue.push(batch);
    batch = { day, bytes: NOTHING, size: 0, lines: 0 };
  }

  function write(line: string): void {
    if (kept > MOST) {
      lost++;
      unsaid++;
      return;
    }
    add(line);
    hurry();
  }

  function add(line: string): void {
    const size = line.length + 1;
    if (batch.size + size + ROOM > batch.bytes.length) makeRoom(size + ROOM);
    batch.size += batch.bytes.write(line, batch.size, 'latin1');
    batch.bytes[batch.size++] = 0x0a;
    batch.lines++;
    kept += size;
    if (batch.size >= FULL) startBatch(batch.day);
  }

  /** Sees to it that what was added is written before long. */
  function hurry(): void {
    // A write that is under way has collected before: at its end it is looked again.
    if (writing !== null) isWanted = true;
    else if (queue.length > 0 && !failing) void start();
    else if (timer === null) wait(PAUSE);
  }

  function makeRoom(size: number): void {
    startBatch(batch.day);
    const enough = Math.max(size, FULL + ROOM);
    batch.bytes = spare.length >= enough ? spare : Buffer.allocUnsafeSlow(enough);
    if (batch.bytes === spare) spare = NOTHING;
  }

  function wait(pause: number): void {
    timer = setTimeout(() => {
      timer = null;
      if (writing !== null) isWanted = true;
      else void start();
    }, pause);
    timer.unref();
  }

  /** One writer at a time. */
  function start(): Promise<void> {
    writing ??= drain().finally(() => {
      writing = null;
      if ((kept > 0 || isWanted) && timer === null && !closed) wait(failing ? RETRY : PAUSE);
      isWanted = false;
    });
    return writing;
  }

  async function drain(): Promise<void> {
    collect();
    try {
      // What is added meanwhile waits for its own turn, or a busy gateway would write line by line. During an outage the
      // last batch is left to grow, because each takes memory for many lines.
      let isLast = false;
      for (;;) {
        if (queue.length === 0 && !isLast) {
          isLast = true;
          startBatch(batch.day);
        }
        const next = queue[0];
        if (next === undefined) break;
        await put(next);
        queue.shift();
        if (next.bytes.length === FULL + ROOM) spare = next.bytes;
        if (unsaid > 0 && kept < MOST / 2) say();
      }
      if (failing) told(null);
      failing = false;
    } catch (error) {
      if (!failing) told(messageOf(error));
      failing = true;
    }
  }

  /** How many lines are missing stands where they would. */
  function say(): void {
    const count = unsaid;
    unsaid = 0;
    timeAt(now());
    add(lostLine(count));
  }

  async function put(next: Batch): Promise<void> {
    await sweep(next.day);
    await file.use(next.day);
    const { seal, end } = seals.seal(next.bytes, next.size, next.lines);
    const whole = await file.append(next.bytes.subarray(0, end), next.lines);
    written += whole;
    if (whole === next.lines) {
      kept -= next.size;
      seals.taken(seal);
      return;
    }
    // The disk took some of the lines; the others are tried again, and what there is of the next one begins anew.
    let start = 0;
    for (let line = 0; line < whole; line++) start = next.bytes.indexOf(0x0a, start) + 1;
    kept -= start;
    next.bytes = next.bytes.subarray(start);
    next.size -= start;
    next.lines -= whole;
    throw new Error('the disk is full');
  }

  async function sweep(day: string): Promise<void> {
    const days = retention();
    if (swept === `${day} ${days}`) return;
    swept = `${day} ${days}`;
    await removeOld(folder, days, now());
  }

  const sweeping = setInterval(() => void sweep(new Date(now()).toISOString().slice(0, 10)), SWEEP);
  sweeping.unref();

  async function flush(): Promise<void> {
    collect();
    // One that is under way may have passed what was added last.
    await writing;
    if (kept > 0) await start();
    if (kept > 0 && !failing) await start();
  }

  return {
    now,
    time: () => timeAt(now()),
    timeAt,
    write,
    add,
    hurry,
    get isFailing() {
      return failing || kept > MOST;
    },
    get written() {
      return written;
    },
    get lost() {
      return lost;
    },
    flush,
    async close() {
      if (closed) return;
      closed = true;
      if (timer !== null) clearTimeout(timer);
      clearInterval(sweeping);
      let late: NodeJS.Timeout | undefined;
      const patience = new Promise<void>((resolve) => {
        late = setTimeout(resolve, PATIENCE);
      });
      await Promise.race([flush(), patience]);
      clearTimeout(late);
      const left = queue.reduce((sum, { lines }) => sum + lines, unsaid);
      if (left > 0) told(`${left} lines could not be written before the end`);
      lost += left - unsaid;
      queue = [];
      await file.close();
    },
  };
}
