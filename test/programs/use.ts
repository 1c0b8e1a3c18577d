/** What the programs of this folder find behind the gateway: names as their servers have them, and every kind of question. */
import { server } from '../support/server.ts';

/** A server of one era with everything the official suite asks for, and one with a resource that changes. */
export function configWith(era: 'legacy' | 'modern'): string {
  const commands = [server('conformance', '--era', era), server('changing')];
  const tables = commands.map((command) => `[[servers]]\nnamespace = ""\ncommand = ${JSON.stringify(command)}\n`);
  return `controls = []\n\n${tables.join('\n')}`;
}
