// test/library/examples.ts: the examples in comments as one program, which `npm run check` compiles.
import { commentsIn } from './declarations.mjs';
import { splitComment } from './page.mjs';

/** What an example may use without declaring it. */
const GIVEN = {
  gateway: 'Gateway',
  config: 'Config',
  catalog: 'ToolSetCatalog',
  toolsets: 'McpServerHandle',
  server: 'McpServer',
  transport: 'StdioServerTransport',
  token: 'string',
  app: '{ use(handler: unknown): void; register(plugin: unknown): Promise<void> }',
  lookUp: '(clientId: string) => Promise<{ toolsets: string[] }>',
  verify: '(authorization: unknown) => Promise<{ clientId: string }>',
  Bun: '{ serve(options: { fetch: (request: Request) => Promise<Response> }): void }',
};

/** What examples import from other packages. */
const OTHERS = {
  createServer: "{ createServer } from 'node:http'",
  Client: "{ Client } from '@modelcontextprotocol/client'",
  McpServer: "{ McpServer } from '@modelcontextprotocol/server'",
  StdioServerTransport: "{ StdioServerTransport } from '@modelcontextprotocol/server/stdio'",
  z: "* as z from 'zod'",
};

export function apiExamples({ declarations }) {
  const names = declarations.filter(({ isPublic }) => isPublic).map(({ name }) => name);
  const all = declarations.flatMap(({ name, comment, text }) =>
    [comment, ...commentsIn(text)]
      .flatMap((one) => splitComment(one).examples)
      .map((code, i) => ({ name: `${name}Example${i + 1}`, code })),
  );
  const programs = all.map(({ name, code }) => {
    const given = Object.entries(GIVEN).filter(([word]) => uses(code, word) && !declaredIn(code).includes(word));
    const parameters = given.map(([word, type]) => `${word}: ${type}`).join(', ');
    const body = [code.replace(/^export /gm, ''), ...declaredIn(code).map((word) => `void ${word};`)].join('\n');
    return `export async function ${name}(${parameters}): Promise<void> {\n${body.replace(/^(?=.)/gm, '  ')}\n}\n`;
  });
  const text = programs.join('\n');
  const others = Object.entries(OTHERS).flatMap(([word, from]) => (uses(text, word) ? [`import ${from};`] : []));
  const own = [...new Set(names)].filter((name) => uses(text, name));
  const words = own.map((name) => (/^[a-z]|Error$/.test(name) ? name : `type ${name}`));
  return `// Written by \`npm run api\` from the examples in comments. It only has to compile; nothing runs it.
${others.join('\n')}
import { ${words.join(', ')} } from '../../src/index.ts';

${text}`;
}

/** Whether the code uses a name, other than as a member or inside a string. */
function uses(code, word) {
  return new RegExp(`(?<!\\.)\\b${word}\\b(?!:)`).test(code.replace(/'[^']*'/g, ''));
}

/** The names that an example declares. */
function declaredIn(code) {
  return [...code.matchAll(/^(?:export )?const (?:(\w+)|\{ (.*?) \})/gm)].flatMap(([, name, names]) =>
    name === undefined ? names.split(', ').map((one) => one.replace(/^\w+: /, '')) : [name],
  );
}
