/** Lets `import.meta` of a bundled file mean the file it was written in, so that data beside it is still found. */
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

interface Member extends Node {
  readonly object: Node;
  readonly computed: boolean;
  readonly property: Node & { readonly name?: string };
}

/** In place and on the same line, so that the map of the lines still fits. Null where nothing is to be replaced. */
export function replaceImportMeta(code: string, program: unknown, file: string): string | null {
  const meta: Readonly<Record<string, string>> = {
    url: pathToFileURL(file).href,
    filename: file,
    dirname: dirname(file),
  };
  const edits: { start: number; end: number; text: string }[] = [];
  visit(program, (node) => {
    if (node.type === 'MemberExpression' && (node as Member).object.type === 'MetaProperty') {
      const { computed, property, object, start, end } = node as Member;
      if (code.slice(object.start, object.end) !== 'import.meta') return false;
      const known = computed ? undefined : meta[property.name ?? ''];
      if (known !== undefined) edits.push({ start, end, text: JSON.stringify(known) });
      // Any other member is the same for every file, or has to be looked up where the packages are.
      return !computed;
    }
    if (node.type === 'MetaProperty' && code.slice(node.start, node.end) === 'import.meta')
      edits.push({ start: node.start, end: node.end, text: `({ ...import.meta, ...${JSON.stringify(meta)} })` });
    return false;
  });
  if (edits.length === 0) return null;
  let text = '';
  let from = 0;
  for (const edit of edits.sort((a, b) => a.start - b.start)) {
    text += code.slice(from, edit.start) + edit.text;
    from = edit.end;
  }
  return text + code.slice(from);
}

/** Every node, from the top down; `enter` says whether it has been dealt with. */
function visit(value: unknown, enter: (node: Node) => boolean): void {
  if (Array.isArray(value)) for (const item of value) visit(item, enter);
  else if (typeof value === 'object' && value !== null) {
    if (typeof (value as Node).type === 'string' && enter(value as Node)) return;
    for (const item of Object.values(value)) visit(item, enter);
  }
}
