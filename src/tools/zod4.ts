/**
 * The one function of zod 4 that schemas need, to be loaded when it is needed. A file of its own: `import('zod')` would
 * keep all of zod, in a chunk that imports the gateway's part of zod and is imported by it, which fails at the start.
 */
export { toJSONSchema } from 'zod';
