/** `toolgate approvals`: what waits for a person, and the decision on it. */
import { userInfo } from 'node:os';
import {
  type ApprovalRequest,
  type Config,
  decideApproval,
  didYouMean,
  GatewayError,
  loadConfig,
  messageOf,
  operatorKey,
  readApprovalRequests,
  toLifetime,
  type Verdict,
} from '../internal.ts';
import type { Options } from './commands.ts';
import { loadOptions } from './session.ts';
import { brief, columns, jsonText, paint, plain, table } from './terminal.ts';

const ACTS = ['list', 'approve', 'deny'];
const PATIENCE = 10_000;

export async function approvals(args: readonly string[], options: Options): Promise<number> {
  const [what = 'list', ...ids] = args;
  if (!ACTS.includes(what)) {
    const text = `toolgate approvals has no "${what}".${didYouMean(what, ACTS)} Choose from ${ACTS.join(', ')}.`;
    throw new GatewayError('usage', text);
  }
  const office = options.url === undefined ? await ofFolder(options) : ofGateway(options.url);
  if (what === 'list') {
    show(await office.list(), options);
    return 0;
  }
  if (ids.length === 0)
    throw new GatewayError('usage', `Which one? toolgate approvals ${what} ID; toolgate approvals lists them.`);
  const decision: Verdict = {
    approved: what === 'approve',
    by: userInfo().username,
    lasting: readLasting(options.for),
    reason: options.reason ?? '',
  };
  for (const id of ids) {
    await office.decide(id, decision);
    process.stdout.write(
      `${paint(decision.approved ? 'green' : 'red', decision.approved ? 'Approved' : 'Denied')} ${id}.\n`,
    );
  }
  return 0;
}

function readLasting(text: string | undefined): number | null {
  const lasting = text === undefined ? null : toLifetime(text);
  if (text !== undefined && lasting === null)
    throw new GatewayError('usage', `--for is a time such as 30m or 12h, not "${text}".`);
  return lasting;
}

interface Office {
  list(): Promise<readonly ApprovalRequest[]>;
  decide(id: string, decision: Verdict): Promise<void>;
}

/** Of the gateways that run with this configuration, however they are spoken to. */
async function ofFolder(options: Options): Promise<Office> {
  const { dataDir }: Config = await loadConfig(loadOptions(options));
  return {
    list: () => readApprovalRequests(dataDir),
    decide: async (id, decision) => decideApproval(dataDir, id, await operatorKey(process.env), decision),
  };
}

/** Of one elsewhere. */
function ofGateway(url: string): Office {
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new GatewayError('usage', `--url is an address such as http://127.0.0.1:8808, not "${url}".`);
  const { origin } = new URL(url);
  const ask = async (path: string, body?: object): Promise<Record<string, unknown>> => {
    const key = await operatorKey(process.env);
    const response = await fetch(`${origin}/admin/approvals${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(PATIENCE),
    }).catch((error: Error) => {
      const why = error.cause instanceof Error ? messageOf(error.cause) : error.message;
      throw new GatewayError('source_unavailable', `No gateway answers at ${origin} (${why}).`);
    });
    const answer = (await response.json().catch(() => ({}))) as { error?: { message?: unknown } };
    if (response.status === 401 || response.status === 403)
      throw new GatewayError(
        'forbidden',
        `The gateway at ${origin} has another operator key: set TOOLGATE_OPERATOR_KEY to that of the gateway.`,
      );
    if (!response.ok)
      throw new GatewayError('usage', String(answer.error?.message ?? `It answered with status ${response.status}.`));
    return answer as Record<string, unknown>;
  };
  return {
    list: async () => (await ask('')).approvals as ApprovalRequest[],
    async decide(id, { approved, lasting, ...rest }) {
      const body = { decision: approved ? 'approve' : 'deny', lasting_ms: lasting, ...rest };
      await ask(`/${encodeURIComponent(id)}`, body);
    },
  };
}

function show(all: readonly ApprovalRequest[], { json }: Options): void {
  if (json === true) {
    process.stdout.write(`${jsonText(all, 2)}\n`);
    return;
  }
  if (all.length === 0) {
    process.stdout.write('Nothing waits for an approval.\n');
    return;
  }
  const rows = all.map(({ id, agent, kind, tool, arguments: given, reason, asked }) => [
    paint('bold', id),
    `${Math.round((Date.now() - Date.parse(asked)) / 1000)} s`,
    plain(agent),
    `${kind === 'access' ? 'access to ' : ''}${plain(tool)}`,
    brief(`${given} (${reason})`, Math.max(40, columns() - 60)),
  ]);
  process.stdout.write(`${table(rows)}\n`);
}
