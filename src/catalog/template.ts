/**
 * Whether a URI can come from a URI template (RFC 6570). It only matches and extracts nothing, because the server gets
 * the URI as it is. All possibilities are followed at once, so the cost is at most the number of parts times the length
 * of the URI.
 */

type TemplatePart = { readonly literal: string } | { readonly slash: boolean; readonly optional: boolean };

/** Templates have at most this many expressions, and URIs that are compared with them at most this many characters. */
export const MOST_EXPRESSIONS = 16;
export const LONGEST_URI = 8_192;

export function matchesTemplate(template: string, uri: string): boolean {
  const open = template.indexOf('{');
  if (open > 0 && !uri.startsWith(template.slice(0, open))) return false;
  const parts = parseTemplate(template);
  // Marks the positions in the URI that can be reached after the parts so far.
  let reached = new Uint8Array(uri.length + 1);
  let next = new Uint8Array(uri.length + 1);
  reached[0] = 1;
  for (const part of parts) {
    next.fill(0);
    if ('literal' in part) markLiteral(part.literal, uri, reached, next);
    else markExpression(part.slash, part.optional, uri, reached, next);
    [reached, next] = [next, reached];
  }
  return reached[uri.length] === 1;
}

function markLiteral(literal: string, uri: string, reached: Uint8Array, next: Uint8Array): void {
  for (let at = uri.indexOf(literal); at >= 0; at = uri.indexOf(literal, at + 1))
    if (reached[at] === 1) next[at + literal.length] = 1;
}

function markExpression(slash: boolean, optional: boolean, uri: string, reached: Uint8Array, next: Uint8Array): void {
  // Whether an expression that began earlier can end here.
  let isOpen = false;
  for (let at = 0; at <= uri.length; at++) {
    if (isOpen || (optional && reached[at] === 1)) next[at] = 1;
    isOpen = (isOpen || reached[at] === 1) && (slash || uri[at] !== '/');
  }
}

/** How many expressions a template has. */
export function countExpressions(template: string): number {
  return parseTemplate(template).filter((part) => !('literal' in part)).length;
}

function parseTemplate(template: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  let at = 0;
  while (at < template.length) {
    const open = template.indexOf('{', at);
    const close = open < 0 ? -1 : template.indexOf('}', open);
    if (close < 0) break;
    if (open > at) parts.push({ literal: template.slice(at, open) });
    parts.push(toExpression(template.slice(open + 1, close)));
    at = close + 1;
  }
  if (at < template.length) parts.push({ literal: template.slice(at) });
  return parts;
}

function toExpression(body: string): TemplatePart {
  // Not '', which every string includes: an empty expression counts as a plain one.
  const operator = body[0] ?? ' ';
  if ('+#'.includes(operator)) return { slash: true, optional: true };
  // A path expression brings its own slashes. Query forms have encoded ones only, and vanish if no value is given.
  if ('/;?&.'.includes(operator)) return { slash: operator === '/' || body.includes('*'), optional: true };
  return { slash: body.endsWith('*'), optional: false };
}

/** How much of a template is fixed text. Of several templates that match, the one with the most fixed text wins. */
export function literalLength(template: string): number {
  return parseTemplate(template).reduce((sum, part) => sum + ('literal' in part ? part.literal.length : 0), 0);
}

/** Whether everything that the template makes has the same scheme. Others, such as `{+path}`, could make any URI. */
export function hasScheme(template: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(template);
}
