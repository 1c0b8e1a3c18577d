/** The same for `zod/mini`. */
export * from 'zod/mini';
