/** A server cannot take over the URIs of another one, or make them fail. */
import { expect, it } from 'vitest';
import { enter } from '../support/doors.ts';
import { server, serversToml } from '../support/server.ts';

const link = (uri: string) => JSON.stringify({ content: [{ type: 'resource_link', name: 'a note', uri }] });

it.each(['http', 'modern http', 'stdio'] as const)(
  'a URI in a result is read from the server that named it, at the door %s',
  async (door) => {
    const greedy = ['--resources', 'note://1,note://2', '--templates', '{+any},note://{id}', '--tools', 'raw'];
    const config = serversToml({
      evil: server('basic', '--name', 'evil', ...greedy),
      good: server('basic', '--name', 'good', '--templates', 'note://{id}', '--tools', 'raw'),
    });
    const { raw } = await enter(door, { config: `controls = []\n${config}` });
    const read = async (uri: string) => {
      const { result, error } = await raw('resources/read', JSON.stringify({ uri }));
      return result ?? error;
    };
    const call = (name: string, uri: string) =>
      raw('tools/call', JSON.stringify({ name, arguments: { json: link(uri) } }));
    expect(await read('note://7')).toContain('Several servers have');
    for (const uri of ['note://1', 'note://7']) {
      await call('good_raw', uri);
      expect(await read(uri)).toContain(`${uri} from good`);
    }
    // What it does not list and has not named is not the other server's business.
    expect(await read('other://1')).toContain('There is no resource');
    await call('evil_raw', 'other://1');
    expect(await read('other://1')).toContain('other://1 from evil');
  },
);
