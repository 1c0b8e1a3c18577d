/**
 * The usual run takes every second or third test of some files, and others with every commit. The wide run takes all of them.
 * These files have many tests of one kind, which do not need each other. One test of every `describe` is always taken. Files
 * about policy, identity, secrets in results and sandboxes run whole.
 */
import type { File, Suite, Task } from '@vitest/runner';
import { TestRunner } from 'vitest';
import { isSoak, isWide } from './wide.ts';

/** By how many the tests of a file are divided, by folder. Those by three are tables of cases that differ in a value or a door. */
const TURNS: readonly (readonly [number, string, string])[] = [
  [3, 'cli', 'command-line'],
  [3, 'http', 'http-messages http-refusals namespace'],
  [3, 'matrix', 'matrix-page'],
  [3, 'relay', 'arguments errors-between-eras input-between-eras pretty progress relay-definitions results'],
  [3, 'rest', 'hostile openapi rest-calls'],
  [
    2,
    'activation',
    'activation activation-agents activation-calls activation-configuration activation-ending activation-sessions auto call-through catalog changes list-stability list-wait names resources slips surface',
  ],
  [2, 'audit', 'copies files missing records trouble'],
  [2, 'cli', 'call completion doctor doctor-fix doctor-rules edit-config init status terminal variables'],
  [2, 'connect', 'connect'],
  [2, 'daemon', 'recovery shared-gateway window'],
  [2, 'http', 'http-reload http-sessions http-sse http-streams letter replay tls'],
  [2, 'library', 'bundle dynamic library-stdio middleware modes mount mounted'],
  [2, 'macros', 'asking macros'],
  [2, 'manager', 'analyze-repo namespace-files registry-install'],
  [2, 'mcp-tasks', 'crossing mcp-tasks-agents mcp-tasks-conformance mcp-tasks-legacy mcp-tasks-modern'],
  [2, 'metrics', 'counts logging metrics'],
  [2, 'modern-clients', 'modern-http modern-stdio modern-streams modern-subscriptions'],
  [2, 'names', 'aliases flat uri-style'],
  [
    2,
    'questions',
    'acknowledged asked-by given-up own questions-address questions-subscriptions roots transports waiting withdrawn',
  ],
  [
    2,
    'resilience',
    'change crash environment flood half-written hang health health-working http-upstream known-servers lazy noise paging reload startup unwritable watch-setting',
  ],
  [2, 'rest', 'rest-ending'],
  [2, 'secrets', 'secrets-cli store'],
  [2, 'servers', 'inside modern-servers servers-refusals servers-returning servers-sse'],
  [2, 'stdio', 'stdio-ending'],
  [2, 'telemetry', 'library otlp-metrics outcomes traces'],
  [
    2,
    'tool-folders',
    'asking-tools broken-file namespaces namespaces-cli node-build node-programs node-tools prompts-and-resources python-calls python-files python-process',
  ],
  [
    2,
    'toolsets',
    'enable equip failures implicit interrupted last-equipped live others picking renamed toolsets-address toolsets-cli toolsets-returning',
  ],
];
const turns = new Map<string, number>(
  TURNS.flatMap(([of, folder, files]) =>
    files.split(' ').map((file) => [`test/${folder}/${file}.test.ts`, of] as const),
  ),
);

export default class TurnsRunner extends TestRunner {
  #report: ((files: File[]) => unknown) | undefined;

  // Vitest puts a function here that reports the tests. What is left out before is not reported.
  get onCollected(): ((files: File[]) => unknown) | undefined {
    const report = this.#report;
    if (report === undefined || isWide || isSoak) return report;
    return (files) => {
      for (const file of files) takeTurn(file);
      return report(files);
    };
  }

  set onCollected(report: (files: File[]) => unknown) {
    this.#report = report;
  }
}

function takeTurn(file: File): void {
  const of = turns.get(file.name);
  if (of !== undefined) thin(file, of, Number(process.env.SEED));
  // `.ci/run` may only leave out in its wide part what has run whole.
  else Object.assign(file.meta, { isWhole: true });
}

function thin(suite: Suite, of: number, turn: number): void {
  const tests = suite.tasks.filter(isRun);
  const taken = new Set<Task>(tests.filter((_, i) => i % of === turn % of));
  if (taken.size === 0 && tests.length > 0) taken.add(tests[turn % tests.length]!);
  suite.tasks = suite.tasks.filter((task) => !isRun(task) || taken.has(task));
  for (const task of suite.tasks) if (task.type === 'suite') thin(task, of, turn);
}

function isRun(task: Task): boolean {
  return task.type === 'test' && task.mode === 'run';
}
