/**
 * docs/: every table of keys agrees with the schema, and every link has a target. The blocks run in pages-*.test.ts.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configJsonSchema } from '../../src/index.ts';
import { connectHttp } from '../support/connection.ts';
import { root, toPattern } from '../support/docs-page.ts';
import { readAnchors, readLinks, readRows } from '../support/markdown.ts';
import { open } from '../support/open-gateway.ts';
import { serverEntry } from '../support/server.ts';

const pages = readdirSync(join(root, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`);

describe('docs/configuration.md lists every key with its default', () => {
  type Schema = {
    properties?: Record<string, Schema>;
    anyOf?: readonly Schema[];
    default?: unknown;
    $ref?: string;
    $defs?: Record<string, Schema>;
  };
  const schema = configJsonSchema() as Schema;
  const page = readFileSync(join(root, 'docs/configuration.md'), 'utf8');
  const sections: [string, Schema | undefined][] = [
    ['Settings', schema],
    ['A server', schema.$defs?.Server],
    ['agent_policies', schema.$defs?.AgentPolicy],
    ['default_policy', schema.properties?.default_policy],
    ['conditions', schema.$defs?.Condition],
    ['task_rules', schema.$defs?.TaskRule],
    ['task_profiles', schema.$defs?.TaskProfile],
    ['macros', schema.$defs?.Macro],
    ['steps', schema.$defs?.MacroStep],
    ['http', schema.properties?.http],
    ['http.jwt', schema.$defs?.JwtIssuer],
    ['http.tls', schema.properties?.http?.properties?.tls],
    ['agents', schema.$defs?.Agent],
    ['limits', schema.properties?.limits],
    ['audit', schema.properties?.audit],
    ['security', schema.properties?.security],
    ['secrets', schema.properties?.secrets],
    ['manager', schema.properties?.manager?.anyOf?.[1]],
    ['repositories', schema.properties?.repositories],
    ['registry', schema.properties?.registry],
    ['search', schema.properties?.search],
    ['folders', schema.properties?.folders],
    ['limits of calls', schema.$defs?.ToolLimits],
  ];

  it.each(sections)('%s', (heading, part) => {
    const rows = readRows(page, heading).flatMap(([keys, given]) =>
      keys!.split(', ').map((key) => [key.replaceAll('`', ''), given!]),
    );
    const keys = Object.keys(part?.properties ?? {});
    expect(rows.map(([key]) => key).sort()).toEqual(keys.sort());
    for (const [key, given] of rows) {
      const value = part?.properties?.[key!]?.default;
      // Words describe a default that depends on something else; the schema has none then.
      const shown = /^`[^`]*`$/.test(given!) ? given : undefined;
      const isTable = typeof value === 'object' && !Array.isArray(value);
      const text = typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
      expect(shown, key).toBe(value === undefined || isTable ? undefined : `\`${text}\``);
    }
  });
});

describe('docs/metrics.md', () => {
  const page = readFileSync(join(root, 'docs/metrics.md'), 'utf8');

  it('lists every metric with its labels', async () => {
    const { gateway, url } = await open(
      { a: { ...serverEntry('basic'), tools: { echo: { cache: '1m' } } } },
      { toolsets: { few: { tools: ['a.echo'] } } },
    );
    const { client } = await connectHttp(url);
    await client.callTool({ name: 'a_echo', arguments: {} });
    await client.callTool({ name: 'nowhere', arguments: {} });
    const measured = gateway.measure().map(({ name, samples }) => {
      const labels = Object.keys(samples[0]?.labels ?? {}).join(',');
      return labels === '' ? name : `${name}{${labels}}`;
    });
    const written = readRows(page, 'All metrics').flatMap(([figures]) =>
      figures!.split(/, (?=`)/).map((figure) => figure.replaceAll('`', '')),
    );
    expect(written.sort()).toEqual(measured.sort());
  });
});

describe('docs/troubleshooting.md', () => {
  const page = readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8');
  const messages = [...page.matchAll(/\*\*`(.+?)`\*\*/g)].map((match) => match[1]!);
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  const source = files.map((path) => readFileSync(join(root, 'src', path), 'utf8')).join('\n');

  it.each(messages)('quotes an existing message: %s', (message) => {
    // The fixed parts of the message. Short ones would match the source by chance.
    const parts = message.split('…').map((part) => part.replace(/^[". ]+|[". ]+$/g, ''));
    const long = parts.filter((part) => part.length > 10);
    expect(long).not.toEqual([]);
    for (const part of long) expect(source.includes(part), part).toBe(true);
  });
});

describe('links', () => {
  const others = ['dashboard', 'examples', 'examples/personas', 'deploy/kubernetes'].map((path) => `${path}/README.md`);
  const all = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...others, ...pages];

  it.each(all)('in %s lead to an existing file and heading', (page) => {
    const broken = readLinks(readFileSync(join(root, page), 'utf8')).filter((link) => {
      if (/^https?:/.test(link)) return false;
      const [path, anchor] = link.split('#');
      const file = path === '' ? join(root, page) : resolve(root, dirname(page), path!);
      if (!existsSync(file)) return true;
      return anchor !== undefined && !readAnchors(readFileSync(file, 'utf8')).includes(anchor);
    });
    expect(broken).toEqual([]);
  });
});

describe('the pattern for expected output', () => {
  it('treats … as a wildcard and everything else literally', () => {
    expect('a (1)\nb\nc').toMatch(toPattern('a (1)\n…\nc\n'));
    expect('a (1)\nb\nc').not.toMatch(toPattern('a (1)\nc\n'));
    expect('a (1)\nb\nc').not.toMatch(toPattern('a (1)\nb\n'));
    expect('aXb').not.toMatch(toPattern('a.b'));
  });
});
