/**
 * The smallest namespace: one file with one tool.
 * Copy this folder into tools/ of the data folder, and it is served.
 */
export const say_hello = {
  title: 'Say hello',
  description: 'Greet someone by name.',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string', description: 'The person to greet.', default: 'World' } },
  },
  annotations: { readOnlyHint: true },
  execute({ name = 'World' }: { name?: string }) {
    return `Hello, ${name}!`;
  },
};
