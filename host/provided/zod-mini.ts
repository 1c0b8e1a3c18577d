/** As zod.ts, for `zod/mini`. */
export * from 'zod/mini';
