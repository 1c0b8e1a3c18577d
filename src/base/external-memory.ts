/**
 * Large results come in buffers whose memory V8 counts, but does not keep in its heap. It collects young buffers after 32 MB of them. By
 * then their sum with the heap may be above the limit at which V8 marks the whole heap, which costs more than everything else about these
 * results: with servers on stdio, CPU per result of 1 MB was 2.9 to 3.9 ms in most processes and 1.7 ms in others, of the same program.
 * So young buffers are collected before that: 2.1 to 2.5 ms in all.
 */

/** Bytes of new buffers after which young ones are collected: half a millisecond, and rare enough that few buffers survive it twice. */
const MOST = 16 * 1024 * 1024;

type Collect = (options: { readonly type: 'minor' }) => void;

let size = 0;
let collect: Collect | null = null;

/** A large buffer was made. */
export function countBuffer(bytes: number): void {
  size += bytes;
  if (size < MOST) return;
  size = 0;
  collect ??= findCollect();
  collect({ type: 'minor' });
}

/** V8 offers it to a context that is made while the flag is set. Nothing else sees it. */
function findCollect(): Collect {
  const { setFlagsFromString } = process.getBuiltinModule('node:v8');
  const { runInNewContext } = process.getBuiltinModule('node:vm');
  setFlagsFromString('--expose-gc');
  try {
    return runInNewContext('gc') as Collect;
  } catch {
    return () => {};
  } finally {
    setFlagsFromString('--no-expose-gc');
  }
}
