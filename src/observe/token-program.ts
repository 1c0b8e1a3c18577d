/** `dist/tokenizer.js`: reads a list of texts as JSON, and writes how many tokens each has. token-meter.ts runs it. */
import { text } from 'node:stream/consumers';
import { countAll } from './token-counter.ts';

process.stdout.write(JSON.stringify(countAll(JSON.parse(await text(process.stdin)) as string[])));
