// A reporter for vitest. It writes each result to a file as soon as it is known, so that a run that is killed leaves what it
// knows. It also stops the run at a deadline: the rest of the files that run then is cut off, and no file is
// started. One JSON object per line; scripts/results.mjs reads them.
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';

export default class ResultsReporter {
  #file = process.env.TEST_RESULTS;
  #stopAt = Number(process.env.TEST_STOP_AT);
  #stopped = false;

  onInit(vitest) {
    this.vitest = vitest;
  }

  onTestRunStart(specifications) {
    this.#write({ files: specifications.map(({ moduleId }) => this.#nameOf(moduleId)) });
    if (this.#stopAt > 0) setTimeout(() => this.#stop(), Math.max(0, this.#stopAt - Date.now())).unref();
  }

  onTestModuleQueued({ moduleId }) {
    this.#write({ started: this.#nameOf(moduleId) });
  }

  onTestCaseResult(test) {
    const { state, errors } = test.result();
    if (state !== 'failed') return;
    this.#write({ failedTest: test.fullName, file: this.#nameOf(test.module.moduleId), message: errors?.[0]?.message });
  }

  onTestModuleEnd(module) {
    const file = this.#nameOf(module.moduleId);
    const tests = [...module.children.allTests()].map((test) => ({ test, ...test.result() }));
    // What failed outside of a test: loading the file, or a hook.
    const broken = [module, ...module.children.allSuites()].filter((part) => part.errors().length > 0);
    for (const part of broken)
      this.#write({ failedTest: part.fullName ?? 'loading the file', file, message: part.errors()[0].message });
    const skipped = tests.filter(({ state }) => state === 'skipped');
    const cut = this.#stopped && tests.some(({ test, state }) => isCut(test, state));
    if (!cut) for (const { test, note } of skipped) this.#write({ skippedTest: test.fullName, file, note });
    this.#write({
      ended: file,
      passed: tests.filter(({ state }) => state === 'passed').length,
      failed: tests.filter(({ state }) => state === 'failed').length + broken.length,
      skipped: cut ? 0 : skipped.length,
      cut,
      ms: Math.round(module.diagnostic().duration),
      cpuMs: module.meta().cpuMs,
      isWhole: module.meta().isWhole,
    });
  }

  onTestRunEnd(_modules, errors) {
    for (const { message, VITEST_TEST_PATH: path } of errors)
      this.#write({ error: message, ...(path && { file: this.#nameOf(path) }) });
    this.#write({ end: true });
  }

  #stop() {
    this.#stopped = true;
    this.#write({ deadline: true });
    void this.vitest.cancelCurrentRun('deadline');
  }

  #nameOf(path) {
    return relative(this.vitest.config.root, path);
  }

  /** Synchronous, because the process may be killed at any time. */
  #write(line) {
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

/** Whether a test was not run because the run was stopped. */
function isCut(test, state) {
  return state === 'pending' || (state === 'skipped' && test.options.mode === 'run');
}
