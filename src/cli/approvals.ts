/** `toolgate approvals`: shows the calls that wait for a person, and decides on them. */
import { userInfo } from 'node:os';
import { GatewayError } from '../base/errors.ts';
import { loadConfig } from '../config/load.ts';
import type { ApprovalRequest, Verdict } from '../store/approval-files.ts';
import { decideApproval, readApprovalRequests } from '../store/decide-approval.ts';
import { operatorKey } from '../store/operator.ts';
import { readDuration, readUrl, withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';
import { ask } from './remote.ts';
import { loadOptions } from './session.ts';
import { brief, columns, paint, plain, print, printResult, table } from './terminal.ts';

export const approvals = withVerbs('approvals', {
  list,
  approve: (ids, options, io) => decide(true, ids, options, io),
  deny: (ids, options, io) => decide(false, ids, options, io),
});

async function list(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const requests = await (await openQueue(options, io)).list();
  const text =
    requests.length === 0 ? 'Nothing waits for an approval.' : table(requests.map((request) => toRow(request, io)));
  return printResult(options, requests, text, io);
}

function toRow({ id, agent, kind, tool, arguments: given, reason, asked }: ApprovalRequest, io: CommandIo): string[] {
  return [
    paint('bold', id, io),
    `${Math.round((Date.now() - Date.parse(asked)) / 1000)} s`,
    plain(agent),
    `${kind === 'access' ? 'access to ' : ''}${plain(tool)}`,
    brief(`${given} (${reason})`, Math.max(40, columns(io) - 60)),
  ];
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
  for (const id of ids) {
    await queue.decide(id, verdict);
    print(`${approved ? paint('green', 'Approved', io) : paint('red', 'Denied', io)} ${id}.`, io);
  }
  return 0;
}

interface ApprovalQueue {
  list(): Promise<readonly ApprovalRequest[]>;
  decide(id: string, verdict: Verdict): Promise<void>;
}

async function openQueue(options: Options, io: CommandIo): Promise<ApprovalQueue> {
  if (options.url !== undefined) return remoteQueue(readUrl('--url', options.url), io);
  return folderQueue((await loadConfig(loadOptions(options, io))).dataDir, io);
}

/** Covers all gateways that run with this data folder, no matter which doors they have. */
function folderQueue(dataDir: string, { env }: CommandIo): ApprovalQueue {
  return {
    list: () => readApprovalRequests(dataDir),
    decide: async (id, verdict) => decideApproval(dataDir, id, await operatorKey(env), verdict),
  };
}

function remoteQueue({ origin }: URL, { env }: CommandIo): ApprovalQueue {
  const request = async (path: string, body?: object): Promise<Record<string, unknown>> => {
    const key = await operatorKey(env);
    const url = new URL(`/admin/approvals${path}`, origin);
    const response = await ask(url, { authorization: `Bearer ${key}` }, body);
    if (response.status === 401 || response.status === 403)
      throw new GatewayError(
        'forbidden',
        `The gateway at ${origin} has another operator key. Set TOOLGATE_OPERATOR_KEY to its key.`,
      );
    const answer = (await response.json().catch(() => ({}))) as { error?: { message?: unknown } };
    if (!response.ok)
      throw new GatewayError(
        'usage',
        String(answer.error?.message ?? `The gateway answered with status ${response.status}.`),
      );
    return answer as Record<string, unknown>;
  };
  return {
    list: async () => (await request('')).approvals as ApprovalRequest[],
    async decide(id, { approved, lasting, ...rest }) {
      const body = { decision: approved ? 'approve' : 'deny', lasting_ms: lasting, ...rest };
      await request(`/${encodeURIComponent(id)}`, body);
    },
  };
}
