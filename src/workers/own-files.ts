/** Workers run from files of our own package. */
export { ownFile } from '../base/own-files.ts';
