/** Toolgate's zod, for tool files whose folder has not installed zod. */
export * from 'zod';
export { default } from 'zod';
