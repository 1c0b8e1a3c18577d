/** `toolgate doctor`: is everything as it should be, and if not, what is it and what helps? */
import { createGateway, type Gateway, GatewayError, idleRules, loadConfig } from '../index.ts';
import type { Options } from './commands.ts';
import { loadOptions } from './session.ts';
import { jsonText, paint, plain, withSpinner } from './terminal.ts';

interface Finding {
  readonly level: 'ok' | 'warning' | 'broken';
  readonly about: string;
  readonly message: string;
  /** The end of what a server wrote to its standard error. */
  readonly stderr?: string;
}

export async function doctor(options: Options): Promise<number> {
  const findings = await examine(options);
  if (options.json === true) process.stdout.write(`${jsonText({ findings }, 2)}\n`);
  else for (const finding of findings) process.stdout.write(`${show(finding)}\n`);
  if (findings.some(({ level }) => level === 'broken')) return 2;
  return findings.some(({ level }) => level === 'warning') ? 1 : 0;
}

async function examine(options: Options): Promise<Finding[]> {
  let gateway: Gateway | null = null;
  try {
    const config = await loadConfig(loadOptions(options));
    gateway = createGateway(config);
    await withSpinner('trying every server', gateway.tried());
    return [
      { level: 'ok', about: 'configuration', message: config.file ?? '' },
      ...config.notices.map((message): Finding => ({ level: 'warning', about: 'configuration', message })),
      ...serverFindings(gateway),
      ...policyFindings(gateway),
      ...gateway.catalog.problems.map(({ source, message }): Finding => ({ level: 'warning', about: source, message })),
    ];
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return [{ level: 'broken', about: 'configuration', message: error.message }];
  } finally {
    await gateway?.close();
  }
}

function policyFindings({ config: { policy }, catalog, statuses }: Gateway): Finding[] {
  if (policy === null) return [];
  return idleRules(policy, catalog, statuses()).map((message) => ({ level: 'warning', about: 'policy', message }));
}

function serverFindings(gateway: Gateway): Finding[] {
  if (gateway.config.servers.length === 0) {
    return [{ level: 'warning', about: 'servers', message: 'No servers are configured.' }];
  }
  return gateway.statuses().map(({ key, present, state, detail, revision, required, stderr }): Finding => {
    if (!present)
      return {
        level: required ? 'broken' : 'warning',
        about: key,
        message: `${state}: ${detail}`,
        stderr: lastLines(stderr),
      };
    const tools = [...gateway.catalog.entries.tool.values()].filter((entry) => entry.sourceKey === key).length;
    return {
      level: 'ok',
      about: key,
      message: `${state}, ${tools} tools${revision === null ? '' : `, protocol ${revision}`} ${detail}`.trim(),
    };
  });
}

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-20).join('\n');
}

const marks = { ok: paint('green', '✓'), warning: paint('yellow', '!'), broken: paint('red', '✗') };

function show({ level, about, message, stderr }: Finding): string {
  const said =
    stderr === undefined || stderr === ''
      ? []
      : plain(stderr)
          .split('\n')
          .map((line) => paint('dim', `    ${line}`));
  return [`${marks[level]} ${paint('bold', about)}: ${plain(message)}`, ...said].join('\n');
}
