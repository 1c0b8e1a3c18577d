/** `toolgate approvals`: shows the calls that wait for a person, and decides on them. */
import { userInfo } from 'node:os';
import { GatewayError } from '../base/errors.ts';
import { sha256 } from '../base/hash.ts';
import { counted, escaped, excerpt, quotedList } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { ApprovalRequest, Verdict } from '../store/approval-files.ts';
import { decideApproval, readApprovalRequests } from '../store/decide-approval.ts';
import { APPROVER_KEY, approverKey, approverKeyFile, makeApproverKey, operatorKey } from '../store/operator.ts';
import { onlyName, readDuration, readUrl, withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { ask } from './remote.ts';
import { type RunningGateway, runningGateways } from './running.ts';
import { cell, jsonText, paint, print, printResult, table } from './terminal.ts';

export const approvals = withVerbs('approvals', {
  list,
  show,
  approve: (ids, options, io) => decide(true, ids, options, io),
  deny: (ids, options, io) => decide(false, ids, options, io),
  key,
});

/** Makes a key for a person, and prints what the configuration needs of it. */
async function key(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const hash = sha256(await makeApproverKey(io.env));
  const from = io.env[APPROVER_KEY] ? APPROVER_KEY : approverKeyFile(io.env);
  const text = `Your key is in ${from}. Give it to nobody. In the configuration of the gateway:\n\n[security.people.YOUR-NAME]\nkey_sha256 = "${hash}"`;
  return printResult(options, { from, key_sha256: hash }, text, io);
}

async function list(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const requests = await (await openQueue(options, io)).list();
  const text =
    requests.length === 0 ? 'Nothing waits for an approval.' : table(requests.map((request) => toRow(request, io)));
  return printResult(options, requests, text, io);
}

/** Of the arguments and of the reason, the most characters that the list shows. */
const MOST_IN_ROW = 200;

function toRow(request: ApprovalRequest, io: CommandIo): string[] {
  const { id, agent, arguments: given, reason, asked } = request;
  return [
    paint('bold', cell(id), io),
    `${secondsSince(asked)} s`,
    cell(agent),
    cell(whatFor(request)),
    `${inRow(given)} (${inRow(reason)})`,
  ];
}

function inRow(text: string): string {
  return excerpt(escaped(text), MOST_IN_ROW);
}

/** Whether the list leaves something out, so that nobody who saw only the list can decide. */
function isCut({ agent, tool, arguments: given, reason }: ApprovalRequest): boolean {
  return (
    [agent, tool].some((name) => cell(name) !== escaped(name)) ||
    [given, reason].some((text) => inRow(text) !== escaped(text))
  );
}

function whatFor({ kind, tool }: ApprovalRequest): string {
  return kind === 'access' ? `access to ${tool}` : tool;
}

function secondsSince(time: string): number {
  return Math.round((Date.now() - Date.parse(time)) / 1000);
}

async function show(ids: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const id = onlyName(ids, 'toolgate approvals show ID');
  const request = find(await (await openQueue(options, io)).list(), id);
  return printResult(options, request, wholeText(request, io), io);
}

/** Everything that a person decides on, with nothing left out. */
function wholeText(request: ApprovalRequest, io: CommandIo): string {
  const { id, agent, arguments: given, reason, asked, expires } = request;
  const rows = [
    ['id', id],
    ['agent', agent],
    ['wants', whatFor(request)],
    ['because', reason],
    ['asked', `${asked}, ${secondsSince(asked)} s ago`],
    ['expires', expires],
    ['needs', needsText(request)],
    ['with', counted(given.length, 'character')],
  ];
  return `${table(rows.map(([name, text]) => [paint('dim', name!, io), escaped(text!)]))}\n${layOut(given)}`;
}

/** Who has to approve it, and who has. */
function needsText({ approvers, require, approved }: ApprovalRequest): string {
  const who = require === 1 ? quotedList(approvers) : `${require} of ${quotedList(approvers, 'and')}`;
  return approved.length === 0 ? who : `${who}; approved by ${quotedList(approved, 'and')}`;
}

/** JSON on several lines, if that shows the same. A key that occurs twice, for example, would be lost. */
function layOut(json: string): string {
  try {
    const value: unknown = JSON.parse(json);
    if (JSON.stringify(value) === json) return jsonText(value, 2);
  } catch {
    // It is no JSON, so it is shown as it is.
  }
  return escaped(json);
}

function find(requests: readonly ApprovalRequest[], id: string): ApprovalRequest {
  const found = requests.find((request) => request.id === id);
  if (found !== undefined) return found;
  throw unknown(id);
}

function unknown(id: string): GatewayError {
  return new GatewayError('usage', `No open request has the id ${JSON.stringify(id)}. It may have ended already.`);
}

async function decide(approved: boolean, ids: readonly string[], options: Options, io: CommandIo): Promise<number> {
  if (ids.length === 0)
    throw new GatewayError(
      'usage',
      `Which one? toolgate approvals ${approved ? 'approve' : 'deny'} ID; toolgate approvals lists them.`,
    );
  const verdict: Verdict = {
    approved,
    by: userInfo().username,
    lasting: readDuration('--for', options.for),
    reason: options.reason ?? '',
  };
  const queue = await openQueue(options, io);
  const requests = approved && options.seen !== true ? await queue.list() : [];
  const unseen = requests.find((request) => ids.includes(request.id) && isCut(request));
  if (unseen !== undefined)
    throw new GatewayError(
      'usage',
      `The list does not show all of ${unseen.id}. Read it with: toolgate approvals show ${unseen.id}. Then approve it with --seen.`,
    );
  for (const id of ids) {
    const more = await queue.decide(id, verdict);
    const open = more === 0 ? '' : ` ${counted(more, 'more approval')} ${more === 1 ? 'is' : 'are'} needed.`;
    print(`${approved ? paint('green', 'Approved', io) : paint('red', 'Denied', io)} ${id}.${open}`, io);
  }
  return 0;
}

interface ApprovalQueue {
  list(): Promise<readonly ApprovalRequest[]>;
  /** Resolves with the number of people who still have to approve. */
  decide(id: string, verdict: Verdict): Promise<number>;
}

async function openQueue(options: Options, io: CommandIo): Promise<ApprovalQueue> {
  const own = await approverKey(io.env);
  if (options.url !== undefined) return remoteQueue(readUrl('--url', options.url), own ?? (await operatorKey(io.env)));
  const config = await loadConfig(loadOptions(options, io));
  return own === null ? folderQueue(config.dataDir, io) : socketQueue(config, own, io);
}

/** Covers all gateways that run with this data folder, no matter which doors they have. */
function folderQueue(dataDir: string, { env }: CommandIo): ApprovalQueue {
  return {
    list: () => readApprovalRequests(dataDir),
    decide: async (id, verdict) => decideApproval(dataDir, id, await operatorKey(env), verdict),
  };
}

/** The same gateways, for a person with a key of their own. Files are signed with the operator key, so these are asked. */
function socketQueue(config: Config, own: string, io: CommandIo): ApprovalQueue {
  const gateways = () => runningGateways(config, io, async () => own);
  const listOf = async (gateway: RunningGateway) => toRequests(JSON.parse((await gateway.ask(PATH)).toString()));
  return {
    list: async () => (await Promise.all((await gateways()).map(listOf))).flat(),
    async decide(id, verdict) {
      for (const gateway of await gateways()) {
        if ((await listOf(gateway)).every((request) => request.id !== id)) continue;
        const answer = await gateway.ask(`${PATH}/${encodeURIComponent(id)}`, { body: bodyOf(verdict) });
        return toMore(JSON.parse(answer.toString()));
      }
      throw unknown(id);
    },
  };
}

const PATH = '/admin/approvals';

function bodyOf({ approved, lasting, ...rest }: Verdict): object {
  return { decision: approved ? 'approve' : 'deny', lasting_ms: lasting, ...rest };
}

function toRequests(answer: unknown): readonly ApprovalRequest[] {
  return (answer as { approvals: ApprovalRequest[] }).approvals;
}

function toMore(answer: unknown): number {
  return Number((answer as { more?: unknown }).more ?? 0);
}

function remoteQueue({ origin }: URL, key: string): ApprovalQueue {
  const request = async (path: string, body?: object): Promise<unknown> => {
    const response = await ask(new URL(`${PATH}${path}`, origin), { authorization: `Bearer ${key}` }, body);
    const answer = (await response.json().catch(() => ({}))) as { error?: { message?: unknown } };
    if (response.status === 401 || (response.status === 403 && body === undefined))
      throw new GatewayError(
        'forbidden',
        `The gateway at ${origin} does not know your key. Set TOOLGATE_OPERATOR_KEY to its operator key, or TOOLGATE_APPROVER_KEY to your own.`,
      );
    if (!response.ok)
      throw new GatewayError(
        'usage',
        String(answer.error?.message ?? `The gateway answered with status ${response.status}.`),
      );
    return answer;
  };
  return {
    list: async () => toRequests(await request('')),
    decide: async (id, verdict) => toMore(await request(`/${encodeURIComponent(id)}`, bodyOf(verdict))),
  };
}
