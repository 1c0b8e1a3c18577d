/** Schemathesis reads the document, generates good and bad calls, and checks the answers: no 500, and only what the document promises. */
import { beforeAll, describe, expect, it } from 'vitest';
import { isMissingPython, pythonProgram } from '../support/needs.ts';
import { runTool } from '../support/tools.ts';
import { type RestGateway, startRest } from './rest.ts';

const program = pythonProgram('rest', 'st');
const TOKEN = 'a-token-for-schemathesis';
const TOOLS = `
import { z } from 'zod';
const person = z.object({ name: z.string().min(1), age: z.number().int().min(0).optional() });
export const add = {
  description: 'Adds.',
  inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
  outputSchema: z.number(),
  execute: ({ a, b }) => a + b,
};
export const greet = {
  description: 'Greets.',
  inputSchema: z.object({ person, tone: z.enum(['warm', 'cold']).nullable() }),
  outputSchema: z.object({ text: z.string() }),
  execute: ({ person }) => ({ text: 'Hello ' + person.name }),
};
export const pick = {
  description: 'Gives back what it gets.',
  inputSchema: z.object({ of: z.array(z.string()).max(4), deep: z.record(z.string(), z.number()).optional() }),
  execute: (input) => input,
};
export const nothing = { description: 'Takes nothing.', inputSchema: z.object({}), execute: () => 'done' };
`;

let gateway: RestGateway;
describe.skipIf(isMissingPython('rest'))('Schemathesis', () => {
  beforeAll(async () => {
    const config = { http: { mcpo: true } };
    gateway = await startRest(config, { '.toolgate/tools/ts/tools.ts': TOOLS }, { BEARER_TOKEN: TOKEN });
  });

  it.each([
    ['/ts/openapi.json', []],
    // The document lists only calls, because clients turn each operation into a tool. But GET works too.
    ['/openapi.json', ['--exclude-checks', 'allow_header_conformance,unsupported_method']],
  ])('finds nothing wrong with %s', { timeout: 60_000 }, async (path, more) => {
    const { code, stdout, stderr } = await runTool(
      program,
      [
        ...['run', gateway.origin + path, '-H', `Authorization: Bearer ${TOKEN}`, '--checks', 'all', ...more],
        ...['--max-examples', '15', '--phases', 'examples,coverage,fuzzing', '--no-color', '--seed', '7'],
      ],
      { timeout: 50_000 },
    );
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).toMatch(/Tested: 4/);
    expect(stdout).toMatch(/\d{2,} generated, \d{2,} passed/);
  });
});
