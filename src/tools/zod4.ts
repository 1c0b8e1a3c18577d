/**
 * The one function of zod 4 that schemas need, loaded on demand. `import('zod')` would keep all of zod in a chunk that imports
 * the gateway's part of zod and is imported by it, which fails at start-up.
 */
export { toJSONSchema } from 'zod';
