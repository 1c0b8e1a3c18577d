/** Runs the official conformance suite as a client. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type HttpGateway, startHttp } from './gateway.ts';
import { server, startListening } from './server.ts';
import { tempFolder } from './temp.ts';
import { nodeFor, runTool, tool } from './tools.ts';

export type Revision = '2025-11-25' | '2026-07-28';

export interface Verdict {
  readonly scenario: string;
  /** Whether the official set scores it. The others are only run and reported. */
  readonly scored: boolean;
  /** Vacuous: nothing was tested. The suite prints these as passed. */
  readonly outcome: 'passed' | 'failed' | 'vacuous';
  /** The names of the checks that failed. */
  readonly failures: readonly string[];
  /** Failures and warnings. */
  readonly messages: readonly string[];
}

interface Check {
  readonly id: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  readonly errorMessage?: string;
}

interface Requirements {
  readonly server: readonly string[];
  readonly client: readonly string[];
  readonly not_scored: readonly { scenario: string; leg: string }[];
}

const suite = tool('@modelcontextprotocol', 'conformance');

/** The scenarios that the official set of a revision scores. */
export function scoredScenarios(revision: Revision): readonly string[] {
  return requirements(revision).server;
}

/** The scenarios in which the suite is the server, and whether the official set of the revision scores them. */
export function clientScenarios(revision: Revision): readonly Pick<Verdict, 'scenario' | 'scored'>[] {
  const { client, not_scored } = requirements(revision);
  const unscored = not_scored.filter(({ leg }) => leg === 'client').map(({ scenario }) => scenario);
  return [
    ...client.map((scenario) => ({ scenario, scored: true })),
    ...unscored.map((scenario) => ({ scenario, scored: false })),
  ];
}

/** Runs one scenario in which the suite is the server and starts this program as its client. */
export async function runClient(
  program: string,
  revision: Revision,
  scenario: string,
  scored: boolean,
): Promise<Verdict> {
  const results = tempFolder();
  const command = `${process.execPath} ${program}`;
  const args = ['client', '--command', command, '--scenario', scenario, '--spec-version', revision, '--force'];
  const node = nodeFor('The suite', '22.0');
  const cli = join(suite, 'dist', 'index.js');
  // The suite gives a client 30 s, which is not enough on a busy machine.
  const all = [cli, ...args, '--timeout', '110000', '-o', results];
  const { stdout, stderr } = await runTool(node, all, { timeout: 120_000 });
  const [file] = readdirSync(results, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('checks.json'),
  );
  if (file === undefined) throw new Error(`The suite tested nothing:\n${stdout}${stderr}`);
  const checks = JSON.parse(readFileSync(join(results, file), 'utf8')) as Check[];
  const verdict = judge(scenario, scored, checks);
  // A client may miss what it only should do, so the suite warns. Toolgate does it.
  const warned = checks.some(({ status }) => status === 'WARNING');
  const output = `${stdout}${stderr}`.slice(-2_000);
  if (verdict.outcome !== 'passed' || !warned) return { ...verdict, messages: [...verdict.messages, output] };
  return { ...verdict, outcome: 'failed', messages: [...verdict.messages, output] };
}

/** Runs the whole set of a revision against an MCP endpoint. */
export async function runSuite(url: string, revision: Revision): Promise<Verdict[]> {
  const { server, not_scored } = requirements(revision);
  const unscored = not_scored.filter(({ leg }) => leg === 'server').map(({ scenario }) => scenario);
  const checks = await runCli(['--url', url, '--requirements', revision]);
  return [...server, ...unscored].map((scenario) => judge(scenario, server.includes(scenario), checks.get(scenario)));
}

/** Runs one scenario of a revision. Scenarios of extensions belong to no revision and have to be forced. */
export async function runScenario(
  url: string,
  revision: Revision,
  scenario: string,
  ...more: readonly '--force'[]
): Promise<Verdict> {
  const checks = await runCli(['--url', url, '--scenario', scenario, '--spec-version', revision, ...more]);
  return judge(scenario, scoredScenarios(revision).includes(scenario), checks.get(scenario));
}

/** The names of the scenarios with this outcome, sorted. */
export function named(verdicts: readonly Verdict[], scored: boolean, ...outcomes: Verdict['outcome'][]): string[] {
  return verdicts
    .filter((verdict) => verdict.scored === scored && outcomes.includes(verdict.outcome))
    .map(({ scenario }) => scenario)
    .sort();
}

/** For the message of a test that fails. */
export function explain(verdicts: readonly Verdict[]): string {
  return verdicts
    .filter(({ outcome }) => outcome !== 'passed')
    .map(({ scenario, outcome, messages }) => `${scenario}: ${outcome}\n  ${messages.join('\n  ')}`)
    .join('\n');
}

/** Starts the fixture, which has everything that the suite tests, and returns its endpoint. */
export async function startFixture(...args: string[]): Promise<string> {
  const { origin } = await startListening('conformance', '--port', 0, ...args);
  return `${origin}/mcp`;
}

const upstreams = {
  stdio: async (...args: string[]) => `command = ${JSON.stringify(server('conformance', ...args))}`,
  HTTP: async (...args: string[]) => `url = ${JSON.stringify(await startFixture(...args))}`,
};
export type Upstream = keyof typeof upstreams;

/** Starts a gateway in front of the fixture, without a prefix and control tools, so that the suite finds the names it knows. */
export function startGateway(upstream: Upstream, ...args: string[]): Promise<HttpGateway> {
  return startSharing('project', upstream, ...args);
}

/** The same, with a server that is shared by all callers, or not. */
export async function startSharing(
  share: 'project' | 'session',
  upstream: Upstream,
  ...args: string[]
): Promise<HttpGateway> {
  const place = await upstreams[upstream](...args);
  const config = `controls = []\n\n[[servers]]\nnamespace = ""\nshare = "${share}"\n${place}\n`;
  return startHttp({ config });
}

function requirements(revision: Revision): Requirements {
  return parse(readFileSync(join(suite, 'requirements', `${revision}.yaml`), 'utf8')) as Requirements;
}

/** The checks of each scenario. Each has a folder `server-SCENARIO-TIME`, which is empty if the scenario was aborted. */
async function runCli(args: readonly string[]): Promise<Map<string, Check[]>> {
  const results = tempFolder();
  const cli = join(suite, 'dist', 'index.js');
  const node = nodeFor('The suite', '22.0');
  const { stdout, stderr } = await runTool(node, [cli, 'server', ...args, '-o', results], { timeout: 120_000 });
  const checks = new Map<string, Check[]>();
  for (const folder of readdirSync(results)) {
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(folder)?.[1];
    const file = join(results, folder, 'checks.json');
    if (scenario !== undefined && existsSync(file)) checks.set(scenario, JSON.parse(readFileSync(file, 'utf8')));
  }
  if (checks.size === 0) throw new Error(`The suite tested nothing:\n${stdout}${stderr}`);
  return checks;
}

function judge(scenario: string, scored: boolean, checks: readonly Check[] | undefined): Verdict {
  if (!checks) return { scenario, scored, outcome: 'failed', failures: [], messages: ['it broke off'] };
  // The schema check also passes for a server that sent nothing.
  const tested = checks.some(({ id, status }) => status === 'SUCCESS' && id !== 'wire-schema-valid');
  const failures = checks.filter(({ status }) => status === 'FAILURE').map(({ id }) => id);
  const messages = checks
    .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
    // A full message may contain whole protocol messages.
    .map(({ id, status, errorMessage }) => `${status} ${id}: ${(errorMessage ?? '').slice(0, 500)}`);
  const outcome = failures.length > 0 ? 'failed' : tested ? 'passed' : 'vacuous';
  return { scenario, scored, outcome, failures, messages };
}
