/** Title, output schema and annotations of folder tools, as the clients of a gateway see them. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Dock, save, startDock } from '../support/dock.ts';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { isWide } from '../support/wide.ts';

const TYPESCRIPT = `
import { defineTool } from 'toolgate';
import { z } from 'zod';

export const add = defineTool({
  title: 'Add two numbers',
  description: 'Adds.',
  inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
  outputSchema: z.object({ sum: z.number() }),
  annotations: { readOnlyHint: true, idempotentHint: true },
  execute: ({ a, b }) => ({ sum: a + b }),
});
`;

const PYTHON = `
from pydantic import BaseModel
from fastmcp.tools import tool

class Sum(BaseModel):
    sum: int

@tool(title="Add two numbers", annotations={"readOnlyHint": True, "idempotentHint": True})
def add(a: int, b: int = 1) -> Sum:
    """Adds."""
    return Sum(sum=a + b)
`;

interface Listed {
  readonly name: string;
  readonly [key: string]: unknown;
}

describe('a TypeScript tool in a folder', () => checkTool('sums/add.ts', TYPESCRIPT, 'number'));
describe.skipIf(noPython !== undefined)('a Python tool in a folder', () => checkTool('sums/add.py', PYTHON, 'integer'));

/** `number` is the type of its arguments. */
function checkTool(file: string, source: string, number: string): void {
  let dock: Dock;
  beforeAll(async () => {
    dock = await startDock({ [file]: source }, { python: source === PYTHON });
    await waitFor(async () => (await dock.names()).includes('sums_add'), 30_000);
  }, 60_000);

  const expected = {
    name: 'sums_add',
    title: 'Add two numbers',
    description: 'Adds.',
    inputSchema: {
      type: 'object',
      properties: { a: { type: number }, b: { type: number, default: 1 } },
      required: ['a'],
    },
    outputSchema: { type: 'object', properties: { sum: { type: number } }, required: ['sum'] },
    annotations: { readOnlyHint: true, idempotentHint: true },
  };
  const clients = async () => {
    const legacy = await dock.connect();
    const modern = await connectModernHttp(dock.url);
    return [legacy, modern] as unknown as (Pick<typeof legacy, 'changes'> & {
      client: { listTools(): Promise<{ tools: Listed[] }>; callTool(params: object): Promise<object> };
    })[];
  };

  it('is listed with its title, schemas and annotations, and its result fits the output schema', async () => {
    for (const { client } of await clients()) {
      // The SDK's clients check structured results against the listed output schema.
      expect((await client.listTools()).tools).toMatchObject([expected]);
      expect(await client.callTool({ name: 'sums_add', arguments: { a: 2 } })).toMatchObject({
        structuredContent: { sum: 3 },
      });
    }
  });

  // A Python worker takes long to start, and how edits reach clients is the gateway's part.
  if (source === PYTHON && !isWide) return;

  it('is listed with a new title and annotations after an edit, and clients are notified', async () => {
    const open = await clients();
    for (const { client } of open) await client.listTools();
    const edited = source
      .replace('Add two numbers', 'Sum up')
      .replace(/idempotentHint("?): (true|True)/, 'openWorldHint$1: $2');
    save(join(dock.tools, file), edited);
    for (const { client, changes } of open) {
      await waitFor(() => changes('tools') > 0);
      expect((await client.listTools()).tools).toMatchObject([
        { ...expected, title: 'Sum up', annotations: { readOnlyHint: true, openWorldHint: true } },
      ]);
    }
  });
}
