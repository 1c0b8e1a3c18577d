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

Written by \`npm run api\`; a test holds it against the source. A change here is a change for everybody who uses the package: [CONTRIBUTING.md](../CONTRIBUTING.md) says what that asks for.

## Exported

\`\`\`ts
${code(true)}
\`\`\`

## Mentioned by what is exported

These have no name outside of the package, but their shape is as public.

\`\`\`ts
${[...imports, '', code(false)].join('\n')}
\`\`\`
`;
}

function plain({ text }) {
  return withoutComments(text).replace(/[ \t]+$/gm, '');
}
