// api/toolgate.api.md: the public interface as code alone, for reviews.
import { head, withoutComments } from './declarations.mjs';

export function apiReport({ declarations, packages }) {
  const code = (isPublic) =>
    declarations
      .filter((declaration) => declaration.isPublic === isPublic)
      .map((declaration) => `${isPublic ? 'export ' : ''}${head(declaration)}${plain(declaration)}`)
      .join('\n\n');
  const imports = [...packages]
    .sort()
    .map(([from, names]) => `import type { ${[...names].sort().join(', ')} } from '${from}';`);
  return `# The public interface of toolgate

Written by \`npm run api\`; a test compares it with the source. A change here affects everybody who uses the package: see [CONTRIBUTING.md](../CONTRIBUTING.md).

## Exported

\`\`\`ts
${code(true)}
\`\`\`

## Mentioned by what is exported

These cannot be imported by name, but their shape is public too.

\`\`\`ts
${[...imports, '', code(false)].join('\n')}
\`\`\`
`;
}

function plain({ text }) {
  return withoutComments(text).replace(/[ \t]+$/gm, '');
}
