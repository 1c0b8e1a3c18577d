/** `toolgate help TOPIC`: the pages of the documentation, which are part of the package. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { ownFile } from '../base/own-files.ts';
import { didYouMean } from '../base/text.ts';

const FOLDER = 'docs';
const INDEX = 'README.md';

/** The names of the pages. */
export function topics(): string[] {
  const folder = ownFile(FOLDER);
  if (!existsSync(folder)) return [];
  const pages = readdirSync(folder).filter((name) => name.endsWith('.md') && name !== INDEX);
  return pages.map((name) => name.slice(0, -'.md'.length)).sort();
}

/** All topics with their titles. */
export function topicsText(): string {
  const names = topics();
  const width = Math.max(...names.map((name) => name.length));
  const rows = names.map((name) => `  ${name.padEnd(width)}  ${/^# (.*)$/m.exec(pageOf(name))?.[1] ?? ''}`.trimEnd());
  return [
    'Topics of toolgate help:',
    '',
    ...rows,
    '',
    'toolgate help TOPIC page prints a page that a command shares its name with.',
  ].join('\n');
}

/** Throws if there is no such page. `commands` are the other words that `toolgate help` takes. */
export function topicText(name: string, commands: readonly string[]): string {
  const all = topics();
  if (all.includes(name)) return withoutComments(pageOf(name)).trimEnd();
  throw new GatewayError(
    'usage',
    `There is no command and no topic "${name}".${didYouMean(name, [...commands, ...all])} See toolgate help topics.`,
  );
}

function pageOf(name: string): string {
  return readFileSync(join(ownFile(FOLDER), `${name}.md`), 'utf8');
}

/** Notes for programs that write parts of a page. */
function withoutComments(text: string): string {
  return text.replace(/^<!--.*-->\n/gm, '');
}
