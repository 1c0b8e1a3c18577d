/** `toolgate dashboard`: a link to the page of the gateway that runs, and the tokens of those who may open it themselves. */
import { GatewayError } from '../base/errors.ts';
import { loadConfig } from '../config/load.ts';
import type { NewLink } from '../dashboard/api-types.ts';
import { type Agent, openAdminStore } from '../store/agents.ts';
import { onlyName, readDuration, withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { openBrowser } from './open-browser.ts';
import { loadOptions, type Options } from './options.ts';
import { confirm, hasTerminal } from './prompts.ts';
import { gatewayAt, type RunningGateway, runningGateways } from './running.ts';
import { brief, columns, note, paint, plain, print, printResult, table } from './terminal.ts';

export const dashboard = withVerbs('dashboard', { open, tokens, add, rotate, revoke });

const LINKS_PATH = '/admin/links';

/** Prints a link that lets one browser in, and offers to open it. */
async function open(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const link = await newLink(options, io);
  if (options.json === true) return printResult(options, link, '', io);
  print(plain(link.url), io);
  note('It works once, and for 5 minutes.', io);
  const asks = options['no-browser'] !== true && hasTerminal(io) && io.stdout.isTTY === true;
  if (asks && (options.yes === true || (await confirm('Open it in a browser?', io)))) openBrowser(link.url, io);
  return 0;
}

async function newLink(options: Options, io: CommandIo): Promise<NewLink> {
  if (options.url !== undefined) return linkOf(gatewayAt(options.url, io));
  const config = await loadConfig(loadOptions(options, io));
  let refusal: unknown = null;
  // A gateway on stdio may run with the same configuration. It has no page.
  for (const running of await runningGateways(config, io)) {
    try {
      return await linkOf(running);
    } catch (error) {
      refusal = error;
    }
  }
  if (refusal instanceof GatewayError && refusal.code !== 'source_broken') throw refusal;
  const why =
    refusal === null
      ? `No gateway runs with ${config.file ?? 'this configuration'}`
      : `The gateway that runs with ${config.file ?? 'this configuration'} has no dashboard`;
  throw new GatewayError('usage', `${why}. Start one with toolgate serve, or name its address with --url.`);
}

async function linkOf({ ask }: RunningGateway): Promise<NewLink> {
  return JSON.parse((await ask(LINKS_PATH, { body: {} })).toString()) as NewLink;
}

const SHOWN_ONCE = 'Keep it now: it is not stored and cannot be shown again.';

async function storeOf(options: Options, io: CommandIo) {
  return openAdminStore((await loadConfig(loadOptions(options, io))).dataDir);
}

async function add(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate dashboard add ann');
  const lifetime = readDuration('--expires', options.expires);
  const made = await (await storeOf(options, io)).add(name, options.description ?? '', lifetime);
  return showToken(made, options, io);
}

async function rotate(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate dashboard rotate ann');
  const grace = readDuration('--grace', options.grace) ?? 0;
  const store = await storeOf(options, io);
  await requireAdmin(name, (await store.read()) ?? []);
  return showToken(await store.rotate(name, grace, readDuration('--expires', options.expires)), options, io);
}

async function revoke(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate dashboard revoke ann');
  const store = await storeOf(options, io);
  await requireAdmin(name, (await store.read()) ?? []);
  await store.revoke(name);
  return printResult(options, { name, revoked: true }, `Revoked "${name}": its pages are closed.`, io);
}

function requireAdmin(name: string, admins: readonly Agent[]): void {
  if (admins.some((one) => one.name === name)) return;
  const names = admins.map((one) => `"${one.name}"`).join(', ');
  const others = names === '' ? 'There are none; make one with toolgate dashboard add NAME.' : `There are ${names}.`;
  throw new GatewayError('usage', `No admin token has the name "${name}". ${others}`);
}

/** Only the token goes to stdout, so that a script can store it without showing it. */
function showToken(made: { readonly token: string }, options: Options, io: CommandIo): number {
  printResult(options, made, made.token, io);
  io.stderr.write(`${paint('dim', SHOWN_ONCE, io, 'stderr')}\n`);
  return 0;
}

/** Never a token or its hash. */
async function tokens(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const admins = ((await (await storeOf(options, io)).read()) ?? []).map(({ name, description, tokens: kept }) => ({
    name,
    description,
    tokens: kept.map(({ created, expires }) => ({ created, expires })),
  }));
  const rows = admins.map(({ name, description, tokens: kept }) => [
    paint('bold', name, io),
    kept.map(({ expires }) => (expires === null ? 'never expires' : `until ${expires.slice(0, 10)}`)).join(', '),
    brief(description, Math.max(20, columns(io) - 60)),
  ]);
  const none = 'There are no admin tokens. Make one: toolgate dashboard add NAME';
  return printResult(options, admins, admins.length === 0 ? none : table(rows), io);
}
