import { describe, expect, expectTypeOf, it } from 'vitest';
import * as z from 'zod';
import { defineTool, type ToolContext } from './define-tool.ts';

describe('defineTool', () => {
  it('returns the same object, and infers the arguments from a schema', () => {
    const tool = {
      description: 'x',
      inputSchema: z.object({ a: z.string(), n: z.number().default(1) }),
      execute: () => 'x',
    };
    expect(defineTool(tool)).toBe(tool);
    defineTool({
      description: 'x',
      inputSchema: z.object({ a: z.string(), n: z.number().default(1) }),
      outputSchema: z.object({ sum: z.number() }),
      execute(input, context) {
        // The type after parsing, with the default applied.
        expectTypeOf(input).toEqualTypeOf<{ a: string; n: number }>();
        expectTypeOf(context).toEqualTypeOf<ToolContext>();
        return { sum: input.n };
      },
    });
  });

  it('accepts a plain JSON Schema', () => {
    defineTool({
      name: 'x',
      description: 'x',
      inputSchema: { type: 'object', properties: { a: { type: 'string' } } },
      async execute(input, { progress, log, signal }) {
        expectTypeOf(input).toEqualTypeOf<Record<string, unknown>>();
        progress(1, 2);
        log.info('x');
        log('error', signal.aborted);
        return input.a;
      },
    });
  });

  it('rejects types that do not fit the schemas', () => {
    defineTool({
      description: 'x',
      inputSchema: z.object({}),
      outputSchema: z.object({ sum: z.number() }),
      // @ts-expect-error: the schema wants a number.
      execute: () => ({ sum: 'x' }),
    });
    // @ts-expect-error: no description.
    defineTool({ inputSchema: { type: 'object' }, execute: () => 1 });
  });
});
