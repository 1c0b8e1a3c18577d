/**
 * Whether a URI can come from a URI template (RFC 6570). It only matches and extracts nothing, because the server gets
 * the URI as it is. All possibilities are followed at once, so the cost is at most the product of the two lengths.
 */

type TemplatePart = { readonly literal: string } | { readonly slash: boolean; readonly optional: boolean };

export function matchesTemplate(template: string, uri: string): boolean {
  const parts = parseTemplate(template);
  // The positions in the URI that can be reached after the parts so far.
  let positions = new Set([0]);
  for (const part of parts) {
    const next = new Set<number>();
    for (const position of positions) {
      if ('literal' in part) {
        if (uri.startsWith(part.literal, position)) next.add(position + part.literal.length);
        continue;
      }
      if (part.optional) next.add(position);
      for (let i = position; i < uri.length && (part.slash || uri[i] !== '/'); i++) {
        if (next.has(i + 1)) break;
        next.add(i + 1);
      }
    }
    positions = next;
  }
  return positions.has(uri.length);
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
