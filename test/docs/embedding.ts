/** Runs the programs of docs/embedding.md and docs/library.md with the installed frameworks and SDKs. */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Check, root } from '../support/docs-page.ts';

const packages = ['@modelcontextprotocol', 'express', 'fastify', 'hono', 'zod'];

function program(name: string): Check {
  return async (text, { home, shell }) => {
    const modules = join(home, 'node_modules');
    mkdirSync(modules, { recursive: true });
    for (const one of packages)
      if (!existsSync(join(modules, one))) symlinkSync(join(root, 'node_modules', one), join(modules, one));
    writeFileSync(join(home, name), text);
    const { output, code } = await shell(`node ${name}`);
    expect(code, output).toBe(0);
    return output;
  };
}

const programs = [
  ...['express.mjs', 'fastify.mjs', 'hono.mjs', 'users.mjs', 'existing.mjs', 'each.mjs'],
  ...['memory.mjs', 'toolsets.mjs', 'permissions.mjs'],
];

export const embeddingChecks: Record<string, Check> = Object.fromEntries(programs.map((name) => [name, program(name)]));
