// dist/index.d.ts and the types for tool files: one file with all types of an entry, so that its users need neither the packages that it is built with nor
// hundreds of declaration files.
import { head, readDeclarations, toComment } from './declarations.mjs';

export function bundleTypes(folder, entry) {
  const { declarations, packages } = readDeclarations(folder, entry);
  const imports = [...packages].sort().map(([from, names]) => {
    if (!from.startsWith('node:')) throw new Error(`A public type comes from ${from}, which its users may not have.`);
    return `import type { ${[...names].sort().join(', ')} } from '${from}';`;
  });
  const code = declarations.map((declaration) => {
    const before = `${toComment(declaration.comment)}${declaration.isPublic ? 'export ' : ''}${head(declaration)}`;
    return before + indentByTwo(declaration.text) + (declaration.text.endsWith('}') ? '' : ';');
  });
  // Without `export {}`, every declaration in the file would count as exported.
  return [...imports, 'export {};', ...code, ''].join('\n');
}

function indentByTwo(code) {
  return code.replace(/^(?: {4})+/gm, (indent) => ' '.repeat(indent.length / 2));
}
