// An editor: records what it was given, then applies the replacement in EDIT, [from, to], to the file.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const file = process.argv.at(-1);
const text = readFileSync(file, 'utf8');
const mode = (path) => (statSync(path).mode & 0o777).toString(8);
const keys = Object.keys(process.env).filter((name) => name.startsWith('SECRETS_KEY'));
writeFileSync(
  process.env.NOTES,
  JSON.stringify({
    file,
    modes: [mode(file), mode(dirname(file))],
    files: readdirSync(dirname(file)),
    text,
    keys,
    args: process.argv.slice(2, -1),
  }),
);
const [from, to] = JSON.parse(process.env.EDIT ?? '["",""]');
// Next to the file, as editors do.
writeFileSync(`${file}.swp`, text);
if (from === 'WAIT') {
  process.stdout.write('editor is open\n');
  setInterval(() => {}, 1000);
} else writeFileSync(file, text.replace(from, to));
