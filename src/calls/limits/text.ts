/** Cuts texts to a size in bytes without splitting characters. */

/** At most `most` bytes from `from` on, but always at least one character. Both ends are character boundaries. */
export function pieceOf(bytes: Buffer, from: number, most: number): Buffer {
  const start = startAt(bytes, from);
  let end = start + most;
  if (end >= bytes.length) return bytes.subarray(start);
  while (end > start && isInside(bytes[end]!)) end--;
  if (end === start) {
    end++;
    while (end < bytes.length && isInside(bytes[end]!)) end++;
  }
  return bytes.subarray(start, end);
}

/** The start of the character that contains the byte at `from`. */
export function startAt(bytes: Buffer, from: number): number {
  let start = Math.min(from, bytes.length);
  while (start > 0 && start < bytes.length && isInside(bytes[start]!)) start--;
  return start;
}

function isInside(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** The longest beginning of a text that takes at most `most` bytes as JSON, not counting the quotes. */
export function jsonPrefix(text: string, most: number): string {
  let left = most;
  let end = 0;
  while (end < text.length) {
    const code = text.codePointAt(end)!;
    left -= jsonLength(code);
    if (left < 0) break;
    end += code > 0xffff ? 2 : 1;
  }
  return text.slice(0, end);
}

const SHORT_ESCAPES = new Set([0x22, 0x5c, 0x08, 0x09, 0x0a, 0x0c, 0x0d]);

function jsonLength(code: number): number {
  if (SHORT_ESCAPES.has(code)) return 2;
  if (code < 0x20 || (code >= 0xd800 && code <= 0xdfff)) return 6;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code > 0xffff ? 4 : 3;
}
