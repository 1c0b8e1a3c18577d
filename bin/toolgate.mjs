#!/usr/bin/env node
import { existsSync } from 'node:fs';
import * as nodeModule from 'node:module';

// Node 22.1 and newer keep compiled code between runs; older ones have no such function.
nodeModule.enableCompileCache?.();

const main = new URL('../dist/cli/main.js', import.meta.url);
if (existsSync(main)) {
  const { run } = await import(main.href);
  await run(process.argv.slice(2));
} else {
  console.error('Toolgate is not built yet; run `npm run build` in its folder.');
  process.exitCode = 1;
}
