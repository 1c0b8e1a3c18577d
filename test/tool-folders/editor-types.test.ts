/** Tool files have types in an editor, checked with the real compiler. Nothing is installed for that. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { root } from '../support/docs-page.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

async function project() {
  const cwd = tempFolder({ 'tools.toml': 'controls = []\n' });
  const run = (...args: string[]) => runCli(args, { cwd });
  expect((await run('namespaces', 'create', 'shop')).code).toBe(0);
  return { cwd, run, data: join(cwd, '.toolgate') };
}

/** What the compiler says about the tool files. */
function complaints(data: string): Promise<string> {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  return new Promise((resolve) => {
    execFile(process.execPath, [tsc, '-p', join(data, 'tsconfig.json')], (_, stdout) => resolve(stdout));
  });
}

const GOOD = {
  'prices.ts': `import { defineTool, type ToolContext } from 'toolgate';
import * as z from 'zod';
import { cents } from './_helpers.ts';

async function rate({ signal, log }: ToolContext): Promise<number> {
  log.info('asking');
  const answer = await fetch('https://example.com/rate', { signal });
  return Number(await answer.text());
}

export const price = defineTool({
  description: 'The price of an article.',
  inputSchema: z.object({ article: z.string(), amount: z.number().int().default(1) }),
  outputSchema: z.object({ cents: z.number() }),
  async execute({ article, amount }, context) {
    const name: string = article.toUpperCase();
    return { cents: cents(amount * (await rate(context)) + name.length) };
  },
});
`,
  '_helpers.ts': `export const cents = (euros: number): number => Math.round(euros * 100);\n`,
  'mini.mts': `import { defineTool } from 'toolgate';
import * as z from 'zod/mini';
export const twice = defineTool({
  description: 'Doubles.',
  inputSchema: z.object({ n: z.number() }),
  execute: ({ n }) => n * 2,
});
`,
  'plain.js': `import { defineTool } from 'toolgate';
export const shout = defineTool({
  description: 'Shouts.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  execute: ({ text }) => String(text).toUpperCase(),
});
`,
};

describe('after toolgate namespaces create', () => {
  it('the compiler knows toolgate and zod in tool files, and infers the arguments', { timeout: 120_000 }, async () => {
    const { data, run } = await project();
    writeFiles(join(data, 'tools/shop'), GOOD);
    expect(await complaints(data)).toBe('');
    expect((await run('call', 'shop_say_hello', 'name=Ada')).stdout).toContain('Hello, Ada!');

    writeFiles(join(data, 'tools/shop'), {
      'wrong.ts': `import { defineTool, createGateway } from 'toolgate';
import { z } from 'zod';
export const wrong = defineTool({
  description: 'x',
  inputSchema: z.object({ n: z.number() }),
  execute: ({ n }) => n.toUpperCase(),
});
export const misspelt = defineTool({ description: 'x', inputSchema: z.object({}), timeoutMS: 1, execute: () => 1 });
`,
    });
    const said = await complaints(data);
    expect(said).toContain("wrong.ts(6,25): error TS2339: Property 'toUpperCase' does not exist on type 'number'");
    // Tool files have less of Toolgate than programs.
    expect(said).toContain('createGateway');
    expect(said).toContain('timeoutMS');
  });

  it('a tsconfig.json that exists stays, and the types are written again by sync if they differ', async () => {
    const { data, run } = await project();
    const own = '{ "extends": "./mine.json" }';
    writeFileSync(join(data, 'tsconfig.json'), own);
    const types = join(data, 'types/toolgate.d.ts');
    const before = readFileSync(types, 'utf8');
    writeFileSync(types, 'older');
    expect((await run('namespaces', 'sync')).code).toBe(0);
    expect(readFileSync(types, 'utf8')).toBe(before);
    expect(readFileSync(join(data, 'tsconfig.json'), 'utf8')).toBe(own);
    expect(existsSync(join(data, 'types/zod/index.d.ts'))).toBe(true);
  });

  it('a folder of Python files gets none of that', async () => {
    const cwd = tempFolder({ 'tools.toml': 'controls = []\n' });
    await runCli(['namespaces', 'create', 'py', '--language', 'python'], { cwd });
    expect(existsSync(join(cwd, '.toolgate/tsconfig.json'))).toBe(false);
  });
});
