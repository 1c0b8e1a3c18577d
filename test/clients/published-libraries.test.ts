/** Libraries and command line clients as published, against the demo of the README. */
import { claim } from './rig/claims.ts';
import { commandLines, libraries } from './rig/published.ts';

claim([...libraries, ...commandLines]);
