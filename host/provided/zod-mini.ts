/** Toolgate's `zod/mini`, for tool files whose folder has not installed zod. */
export * from 'zod/mini';
