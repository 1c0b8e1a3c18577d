/** The features of the gateway work for toolsets of a program too. */
import { expect, it } from 'vitest';
import { readAudit } from '../../src/index.ts';
import { tempFolder } from '../support/temp.ts';
import { connect, ERAS, META, startServer, textOf, withId } from './support.ts';

const tool = (name: string) => ({ name, description: 'x', inputSchema: {}, handler: () => `did ${name}` });
const catalog = {
  files: { name: 'Files', description: 'D', tools: [tool('read'), tool('write')] },
  other: { name: 'Other', description: 'D', tools: [tool('do')] },
};

it('applies policies, limits and the audit from its settings, and runs middleware', async () => {
  const dataDir = tempFolder();
  const server = await startServer({
    catalog,
    settings: {
      data_dir: dataDir,
      audit: { enabled: true },
      agent_policies: {
        reader: { allowed_servers: ['files'], denied_tools: { files: ['write'] }, limits: { rate: '3/h' } },
      },
      default_policy: { allow_unknown_tools: true },
    },
  });
  const called: string[] = [];
  server.gateway.use(async (call, next) => {
    called.push(`${call.agent} ${call.server} ${call.name}`);
    return next();
  });
  const [reader, writer] = await Promise.all(
    ['reader', 'writer'].map((id) => connect(ERAS[0]!, server.url, withId(id))),
  );
  for (const client of [reader!, writer!])
    for (const name of ['files', 'other']) await client.json('enable_toolset', { name });
  expect(await reader!.names()).toEqual([...META, 'files.read']);
  expect(await writer!.names()).toEqual([...META, 'files.read', 'files.write', 'other.do']);
  expect(await writer!.text('other.do')).toBe('did do');
  expect(JSON.stringify(await reader!.call('files.write'))).toContain('item_unknown');
  expect(called).toContain('writer other other.do');
  expect(called).toContain('writer toolgate enable_toolset');
  const answers = [];
  for (let i = 0; i < 4; i++) answers.push((await reader!.call('files.read')).isError === true);
  expect(answers).toEqual([false, false, false, true]);
  await server.close();
  const lines = [];
  for await (const line of readAudit(server.gateway.config.audit.dir)) lines.push(line);
  expect(JSON.stringify(lines)).toContain('other.do');
});

it('stays consistent while a client does everything at once in several sessions', async () => {
  const server = await startServer({ catalog, exposurePolicy: { maxActiveToolsets: 1 } });
  const clients = await Promise.all(ERAS.flatMap((era) => [1, 2].map(() => connect(era, server.url, withId('one')))));
  const done = await Promise.all(
    clients.flatMap((client, i) =>
      ['enable_toolset', 'disable_toolset', 'enable_toolset'].map((name) =>
        client.call(name, { name: i % 2 === 0 ? 'files' : 'other' }),
      ),
    ),
  );
  expect(done.every((result) => typeof JSON.parse(textOf(result)).success === 'boolean')).toBe(true);
  const seen = await Promise.all(clients.map((client) => client.names()));
  for (const names of seen) expect(names).toEqual(seen[0]);
  expect([META.length, META.length + 1, META.length + 2]).toContain(seen[0]!.length);
  expect((await server.status('one')).activeCount).toBeLessThanOrEqual(1);
});
