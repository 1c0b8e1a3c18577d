/**
 * Whether a URI can come from a URI template (RFC 6570). Only matching, never extraction: the upstream gets the URI as it is.
 * Runs all possibilities side by side, so its cost is at most the product of the two lengths.
 */

type TemplatePart = { readonly literal: string } | { readonly slash: boolean; readonly optional: boolean };

export function matchesTemplate(template: string, uri: string): boolean {
  const parts = parseTemplate(template);
  // The places in the URI that can be reached after the parts so far.
  let places = new Set([0]);
  for (const part of parts) {
    const next = new Set<number>();
    for (const place of places) {
      if ('literal' in part) {
        if (uri.startsWith(part.literal, place)) next.add(place + part.literal.length);
        continue;
      }
      if (part.optional) next.add(place);
      for (let i = place; i < uri.length && (part.slash || uri[i] !== '/'); i++) {
        if (next.has(i + 1)) break;
        next.add(i + 1);
      }
    }
    places = next;
  }
  return places.has(uri.length);
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
  // Not '', which every text includes: an empty expression is a plain one.
  const operator = body[0] ?? ' ';
  if ('+#'.includes(operator)) return { slash: true, optional: true };
  // A path expression brings its own slashes; query forms may carry encoded ones only, but vanish when nothing is given.
  if ('/;?&.'.includes(operator)) return { slash: operator === '/' || body.includes('*'), optional: true };
  return { slash: body.endsWith('*'), optional: false };
}

/** How much of a template is fixed text: the most specific of several that match is the one that is meant. */
export function literalLength(template: string): number {
  return parseTemplate(template).reduce((sum, part) => sum + ('literal' in part ? part.literal.length : 0), 0);
}
