/**
 * The one function of zod 4 that schemas need, loaded on demand. `import('zod')` would put all of zod into one chunk.
 * That chunk and the gateway's part of zod would import each other, which fails at start-up.
 */
export { toJSONSchema } from 'zod';
