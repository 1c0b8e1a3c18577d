/** `toolgate doctor`: is everything as it should be, and if not, what is it and what helps? */
import {
  type Config,
  type Gateway,
  GatewayError,
  idleRules,
  issuerTrouble,
  loadConfig,
  openAgentStore,
  openGateway,
} from '../internal.ts';
import type { Options } from './commands.ts';
import { secretFindings } from './doctor-secrets.ts';
import type { Finding } from './finding.ts';
import { loadOptions } from './session.ts';
import { jsonText, paint, plain, withSpinner } from './terminal.ts';

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
    gateway = await openGateway(config, { audit: false });
    await withSpinner('trying every server', gateway.tried());
    const { redact } = gateway;
    const findings: Finding[] = [
      { level: 'ok', about: 'configuration', message: config.file ?? '' },
      ...config.notices.map((message): Finding => ({ level: 'warning', about: 'configuration', message })),
      ...(await identityFindings(config)),
      ...(await secretFindings(gateway)),
      ...serverFindings(gateway),
      ...policyFindings(gateway),
      ...gateway.catalog.problems.map(({ source, message }): Finding => ({ level: 'warning', about: source, message })),
    ];
    return findings.map((finding) => ({ ...finding, message: redact(finding.message) }));
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

async function identityFindings({ http, agents, dataDir }: Config): Promise<Finding[]> {
  const findings: Finding[] = [];
  if (http.trustAgentHeader)
    findings.push({
      level: 'warning',
      about: 'http.trust_agent_header',
      message:
        'whoever reaches the gateway, or has BEARER_TOKEN where that is set, may come as any agent. Switch it off unless the network is trusted.',
    });
  const trouble = http.jwt === null ? null : await issuerTrouble(http.jwt);
  if (trouble !== null) findings.push({ level: 'warning', about: 'http.jwt', message: trouble });
  try {
    const saved = (await openAgentStore(dataDir).read()) ?? [];
    const now = new Date().toISOString();
    const written = new Set(agents.filter(({ tokens }) => tokens.length > 0).map(({ name }) => name));
    for (const { name, tokens } of saved)
      if (!written.has(name) && tokens.every(({ expires }) => expires !== null && expires <= now))
        findings.push({
          level: 'warning',
          about: `agent ${name}`,
          message: `its token has expired. Give it another: toolgate agents rotate ${name}`,
        });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    findings.push({ level: 'broken', about: 'agents', message: error.message });
  }
  return findings;
}

function serverFindings(gateway: Gateway): Finding[] {
  if (gateway.statuses().length === 0) {
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
