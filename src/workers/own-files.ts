/** Workers run from files of our own package. */
export { ownFile } from '../config/own-files.ts';
