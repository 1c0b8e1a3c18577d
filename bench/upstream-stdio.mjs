// A very cheap MCP server on stdio.
//   --tools N          the number of tools
//   --id-last          replies end with their id
//   --era ERA          legacy (sessions), modern (2026-07-28) or both
//   --start-delay MS   reads nothing before that, like a server that starts slowly

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createAnswer } from './answer.mjs';

const { values } = parseArgs({
  options: {
    tools: { type: 'string' },
    'id-last': { type: 'boolean' },
    era: { type: 'string' },
    'start-delay': { type: 'string' },
  },
});
const answer = createAnswer({
  tools: Number(values.tools ?? 10),
  idLast: values['id-last'],
  era: values.era,
});
if (values['start-delay']) await sleep(Number(values['start-delay']));

let rest = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop();
  // Replies to messages that arrived together are sent together, in one system call.
  let out = '';
  for (const line of lines) {
    if (line === '') continue;
    const reply = answer(JSON.parse(line));
    if (typeof reply === 'string') {
      out += `${reply}\n`;
    } else if (reply) {
      process.stdout.cork();
      process.stdout.write(out + reply[0]);
      process.stdout.write(reply[1]);
      process.stdout.write(`${reply[2]}\n`);
      process.stdout.uncork();
      out = '';
    }
  }
  if (out !== '') process.stdout.write(out);
});
process.stdin.on('end', () => process.exit(0));
