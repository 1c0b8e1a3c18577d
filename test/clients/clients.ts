/**
 * The servers behind the gateway for the tests of this folder: unprefixed names, and every kind of request to the
 * client.
 */
import { server } from '../support/server.ts';

/**
 * A server of one era with everything that the official conformance suite needs, and one with a resource that changes.
 */
export function configWith(era: 'legacy' | 'modern'): string {
  const commands = [server('conformance', '--era', era), server('changing')];
  const tables = commands.map((command) => `[[servers]]\nnamespace = ""\ncommand = ${JSON.stringify(command)}\n`);
  return `controls = []\n\n${tables.join('\n')}`;
}
