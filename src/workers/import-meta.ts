/** Makes `import.meta` in a bundled file refer to its source file, so that the file still finds data next to it. */
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';

interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

interface MemberExpression extends SyntaxNode {
  readonly object: SyntaxNode;
  readonly computed: boolean;
  readonly property: SyntaxNode & { readonly name?: string };
}

/** Replaces in place and on the same line, so that line numbers stay right. Null if there is nothing to replace. */
export function replaceImportMeta(code: string, program: unknown, file: string): string | null {
  const meta: Readonly<Record<string, string>> = {
    url: pathToFileURL(file).href,
    filename: file,
    dirname: dirname(file),
  };
  const edits: { start: number; end: number; text: string }[] = [];
  visit(program, (node) => {
    if (node.type === 'MemberExpression' && (node as MemberExpression).object.type === 'MetaProperty') {
      const { computed, property, object, start, end } = node as MemberExpression;
      if (code.slice(object.start, object.end) !== 'import.meta') return false;
      const known = computed ? undefined : meta[property.name ?? ''];
      if (known !== undefined) edits.push({ start, end, text: JSON.stringify(known) });
      // `import.meta.resolve` and others stay: they do not depend on the file, or must resolve where the packages are.
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

/** Visits all nodes from the top down. Children of a node for which `enter` returns true are skipped. */
function visit(value: unknown, enter: (node: SyntaxNode) => boolean): void {
  if (Array.isArray(value)) for (const item of value) visit(item, enter);
  else if (typeof value === 'object' && value !== null) {
    if (typeof (value as SyntaxNode).type === 'string' && enter(value as SyntaxNode)) return;
    for (const item of Object.values(value)) visit(item, enter);
  }
}
