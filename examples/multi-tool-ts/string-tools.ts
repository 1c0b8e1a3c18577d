/** Several files in one namespace: the tools of all of them are served together. */
import { defineTool } from 'toolgate';
import { z } from 'zod';

const input = z.object({ text: z.string().describe('The text.') });

export const reverse = defineTool({
  description: 'Write a text backwards.',
  inputSchema: input,
  execute: ({ text }) => [...text].reverse().join(''),
});

export const count_words = defineTool({
  description: 'Count the words of a text.',
  inputSchema: input,
  execute: ({ text }) => text.split(/\s+/).filter((word) => word !== '').length,
});
