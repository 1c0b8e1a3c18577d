/** Toolgate's own zod, for tool files of a namespace that has not installed one. */
export * from 'zod';
export { default } from 'zod';
