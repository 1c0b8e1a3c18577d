// dist/index.d.ts: one file with all the types of the library and nothing else, so that whoever uses it needs neither
// the packages that it was made with nor two hundred files.
import { head, readDeclarations, toComment } from './declarations.mjs';

export function bundleTypes(folder) {
  const { declarations, packages } = readDeclarations(folder);
  const imports = [...packages].sort().map(([from, names]) => {
    if (!from.startsWith('node:')) throw new Error(`A public type comes from ${from}, which its users may not have.`);
    return `import type { ${[...names].sort().join(', ')} } from '${from}';`;
  });
  const code = declarations.map((declaration) => {
    const before = `${toComment(declaration.comment)}${declaration.isPublic ? 'export ' : ''}${head(declaration)}`;
    return before + indentByTwo(declaration.text) + (declaration.text.endsWith('}') ? '' : ';');
  });
  // Without it, everything at the top of a declaration file counts as exported.
  return [...imports, 'export {};', ...code, ''].join('\n');
}

function indentByTwo(code) {
  return code.replace(/^(?: {4})+/gm, (indent) => ' '.repeat(indent.length / 2));
}
