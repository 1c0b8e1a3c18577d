/** Published SDKs and bridges against the demo of the README. */
import { beforeAll } from 'vitest';
import { claim } from './rig/claims.ts';
import { serveDemo } from './rig/place.ts';
import { bridges, sdks } from './rig/published.ts';

let origin: string;

// One gateway for all of them, because starting the demo costs more than they do.
beforeAll(async () => {
  origin = await serveDemo();
}, 120_000);

claim([...sdks, ...bridges], ['http'], () => origin);
claim(sdks, ['stdio']);
