/** Published clients against the demo of the README, in every run. `npm run test:wide` runs all of them. */
import { beforeAll } from 'vitest';
import { isWide, onePart } from '../support/wide.ts';
import { claim } from './rig/claims.ts';
import { serveDemo } from './rig/place.ts';
import { bridges, sdks } from './rig/published.ts';

let origin: string;

// One gateway for all of them, because starting the demo costs more than they do.
beforeAll(async () => {
  origin = await serveDemo();
}, 120_000);

// Both SDKs run in python.test.ts, too.
claim([...onePart(sdks.length, sdks), ...bridges], ['http'], () => origin);
if (isWide) claim(sdks, ['stdio']);
