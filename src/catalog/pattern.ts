/**
 * The one pattern dialect: `*` matches any run of characters, `?` exactly one, everything else itself.
 * Two pointers and one remembered star: linear in practice and never exponential, whatever a user writes.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let resume = 0;
  while (t < text.length) {
    const want = pattern.charCodeAt(p);
    if (want === ASTERISK) {
      star = p++;
      resume = t;
    } else if (want === text.charCodeAt(t) || want === QUESTION) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (pattern.charCodeAt(p) === ASTERISK) p++;
  return p === pattern.length;
}

const ASTERISK = 42;
const QUESTION = 63;

export function isPattern(text: string): boolean {
  return text.includes('*') || text.includes('?');
}
