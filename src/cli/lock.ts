/** `toolgate lock`: what servers offer now, compared with what a person approved. */
import { GatewayError } from '../base/errors.ts';
import { isObject } from '../base/objects.ts';
import { counted } from '../base/text.ts';
import type { Deviation, DeviationKind } from '../catalog/pins.ts';
import { LOCK_FILE } from '../config/pins.ts';
import type { LockReport } from '../doors/commands/lock.ts';
import { withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { inGateway, type RunInGateway } from './in-gateway.ts';
import type { Options } from './options.ts';
import { confirm, hasTerminal } from './prompts.ts';
import { cell, paint, plain, print, printResult, table, warn } from './terminal.ts';

interface LockWork {
  readonly report: LockReport;
  readonly names: readonly string[];
  readonly run: RunInGateway;
}

type LockVerb = (work: LockWork, options: Options, io: CommandIo) => Promise<number>;

const compared =
  (verb: LockVerb) =>
  (names: readonly string[], options: Options, io: CommandIo): Promise<number> =>
    inGateway(
      options,
      io,
      async (run) => {
        const report = await run('lock', { names });
        for (const key of report.away) warn(`Server "${key}" is not up, so it cannot be compared.`, io);
        return verb({ report, names, run }, options, io);
      },
      { audit: false },
    );

export const lock = withVerbs('lock', {
  status: compared(status),
  diff: compared(diff),
  approve: compared(approve),
});

const COLORS: Readonly<Record<DeviationKind, 'green' | 'yellow' | 'red' | 'dim'>> = {
  new: 'green',
  gone: 'dim',
  compatible: 'green',
  breaking: 'yellow',
  suspicious: 'red',
};

async function status({ report }: LockWork, options: Options, io: CommandIo): Promise<number> {
  const { file, exists, differences: found } = report;
  const rows = found.map(({ server, kind, name, verdict, reasons }) => [
    paint(COLORS[verdict], verdict, io),
    cell(kind === 'instructions' ? server : `${server}.${name}`),
    kind,
    plain(reasons.join('; ')),
  ]);
  const json = { file, exists, differences: found.map(withoutDefinitions) };
  printResult(options, json, found.length === 0 ? sameText(report) : `${table(rows)}\n${summary(report)}`, io);
  return found.length === 0 ? 0 : 1;
}

function withoutDefinitions({ before: _, after: __, ...rest }: Deviation): object {
  return rest;
}

function sameText({ compared: count }: LockReport): string {
  return `${counted(count, 'server')} as in ${LOCK_FILE}.`;
}

function summary({ exists, differences: found }: LockReport): string {
  if (!exists) return `There is no ${LOCK_FILE} yet. To approve all of this: toolgate lock approve`;
  const word = found.length === 1 ? 'difference' : 'differences';
  return `${found.length} ${word} from ${LOCK_FILE}. To see them: toolgate lock diff. To approve: toolgate lock approve`;
}

async function diff({ report }: LockWork, options: Options, io: CommandIo): Promise<number> {
  const { differences: found } = report;
  const text = found.map((one) => diffText(one, io)).join('\n\n');
  printResult(options, found, found.length === 0 ? sameText(report) : text, io);
  return found.length === 0 ? 0 : 1;
}

function diffText({ server, kind, name, verdict, reasons, before, after }: Deviation, io: CommandIo): string {
  const title = kind === 'instructions' ? `instructions of ${cell(server)}` : `${kind} ${cell(`${server}.${name}`)}`;
  const lines = changedLines(before, after).map(([sign, line]) =>
    paint(sign === '-' ? 'red' : 'green', `${sign} ${plain(line)}`, io),
  );
  return [
    `${paint('bold', title, io)}  ${paint(COLORS[verdict], verdict, io)}`,
    ...reasons.map((one) => `  ${plain(one)}`),
    ...lines,
  ].join('\n');
}

/** The members that differ, by path: what is gone, and what is there instead. */
function changedLines(before: Deviation['before'], after: Deviation['after']): (readonly ['-' | '+', string])[] {
  const [old, now] = [leavesOf(before), leavesOf(after)];
  const paths = [...new Set([...old.keys(), ...now.keys()])];
  return paths.flatMap((path) => {
    if (old.get(path) === now.get(path)) return [];
    const line = (value: string) => (path === '' ? value : `${path}: ${value}`);
    return [
      ...(old.has(path) ? [['-', line(old.get(path)!)] as const] : []),
      ...(now.has(path) ? [['+', line(now.get(path)!)] as const] : []),
    ];
  });
}

function leavesOf(value: unknown, path = '', into = new Map<string, string>()): Map<string, string> {
  if (value === null && path === '') return into;
  if (isObject(value) && Object.keys(value).length > 0)
    for (const [key, one] of Object.entries(value)) leavesOf(one, path === '' ? key : `${path}.${key}`, into);
  else if (Array.isArray(value) && value.length > 0)
    for (const [index, one] of value.entries()) leavesOf(one, `${path}[${index}]`, into);
  else into.set(path, JSON.stringify(value));
  return into;
}

async function approve({ report, names, run }: LockWork, options: Options, io: CommandIo): Promise<number> {
  const { file, hash, differences: found } = report;
  const suspicious = found.filter(({ verdict }) => verdict === 'suspicious');
  if (suspicious.length > 0 && options.yes !== true) {
    print(suspicious.map((one) => diffText(one, io)).join('\n\n'), io);
    const question = `Approve ${counted(suspicious.length, 'suspicious change')}?`;
    if (!hasTerminal(io))
      throw new GatewayError(
        'usage',
        `${counted(suspicious.length, 'change is', 'changes are')} suspicious. Look at them, and approve them with --yes.`,
      );
    if (!(await confirm(question, io))) return 1;
  }
  const { servers } = await run('lock-approve', { names, hash });
  const json = { file, approved: found.map(withoutDefinitions) };
  return printResult(
    options,
    json,
    `${LOCK_FILE} has ${counted(servers, 'server')}, ${counted(found.length, 'change')} approved.`,
    io,
  );
}
