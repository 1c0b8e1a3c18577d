#!/usr/bin/env node
import { Console } from 'node:console';
import { existsSync } from 'node:fs';
import * as nodeModule from 'node:module';

// Node 22.1 and newer keep compiled code between runs; older ones have no such function.
nodeModule.enableCompileCache?.();

const main = new URL('../dist/cli/main.js', import.meta.url);
// Only a checkout has this file. An installed package has no sources that could be newer.
const staleness = new URL('../scripts/stale-build.mjs', import.meta.url);
if (existsSync(main)) {
  // Exporters of OpenTelemetry print on the console, and stdout belongs to the protocol or the result of a command.
  Object.assign(console, new Console({ stdout: process.stderr, stderr: process.stderr }));
  const { run } = await import(main.href);
  const running = run(process.argv.slice(2), process);
  // A client waits for the first answer, so sources are compared after it, or when the command is done.
  await Promise.race([running, new Promise((resolve) => setTimeout(resolve, 1_000).unref())]);
  // Looking at all sources would take as long as the rest of `--version`.
  if (process.argv[2] !== '--version' && existsSync(staleness)) await (await import(staleness.href)).warnIfStale();
  process.exitCode = await running;
} else {
  console.error('Toolgate is not built yet; run `npm run build` in its folder.');
  process.exitCode = 1;
}
