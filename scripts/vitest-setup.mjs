// Tests that start the gateway run dist/, so it is brought up to date also when vitest is called directly.
import { ensureBuilt } from './setup.mjs';

export async function setup() {
  try {
    await ensureBuilt();
  } catch (error) {
    // Someone else's half-written file must not stop the tests of one that is fine.
    console.error(`${error.message} Tests that start the gateway use the last good build, if there is one.`);
  }
}
