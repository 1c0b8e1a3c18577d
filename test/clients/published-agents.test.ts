/** Coding agents as published, with a scripted model, against the demo of the README. */
import { claim } from './rig/claims.ts';
import { codingAgents } from './rig/published.ts';

claim(codingAgents);
