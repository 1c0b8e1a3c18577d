/**
 * The one pattern dialect: `*` matches any run of characters, `?` exactly one, everything else itself. Two pointers and
 * one remembered star make it linear in practice, and never exponential, whatever pattern a user writes.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let resume = 0;
  while (t < text.length) {
    const want = p < pattern.length ? pattern.charCodeAt(p) : END;
    if (want === ASTERISK) {
      star = p++;
      resume = t;
    } else if (want === QUESTION) {
      p++;
      t += charLength(text, t);
    } else if (want === text.charCodeAt(t)) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      resume += charLength(text, resume);
      t = resume;
    } else {
      return false;
    }
  }
  while (p < pattern.length && pattern.charCodeAt(p) === ASTERISK) p++;
  return p === pattern.length;
}

const END = -1;
const ASTERISK = 42;
const QUESTION = 63;

/** Two code units for characters such as emoji. */
function charLength(text: string, at: number): number {
  return text.codePointAt(at)! > 0xffff ? 2 : 1;
}

export function isPattern(text: string): boolean {
  return text.includes('*') || text.includes('?');
}
