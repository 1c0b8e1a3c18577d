/** Several tools in one file: every exported object with a description, a schema and a function is one. */
import { defineTool } from 'toolgate';
import { z } from 'zod';

const numbers = z.object({ a: z.number().describe('First number.'), b: z.number().describe('Second number.') });

export const add = defineTool({
  description: 'Add two numbers together.',
  inputSchema: numbers,
  execute: ({ a, b }) => a + b,
});

export const multiply = defineTool({
  description: 'Multiply two numbers.',
  inputSchema: numbers,
  execute: ({ a, b }) => a * b,
});
