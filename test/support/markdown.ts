/** Extracts the parts of a page that can be checked: fenced blocks, tables, headings, links. */

export interface Block {
  /** The first word after the fence. */
  readonly language: string;
  /** The further words: a file name, or how to run the block. GitHub does not show them. */
  readonly tags: readonly string[];
  readonly text: string;
  /** The location for messages: `README.md:12`. */
  readonly place: string;
}

export function readBlocks(markdown: string, page: string): Block[] {
  const fence = /^```(\S*)([^\n]*)\n(.*?)^```$/gms;
  return [...markdown.matchAll(fence)].map((match) => ({
    language: match[1]!,
    tags: match[2]!.split(' ').filter((tag) => tag !== ''),
    text: match[3]!,
    place: `${page}:${markdown.slice(0, match.index).split('\n').length}`,
  }));
}

/** The rows of all tables below a heading, without header and separator, with cells as written. */
export function readRows(markdown: string, heading: string): string[][] {
  const [, section = ''] = markdown.split(new RegExp(`^#+ ${heading}$`, 'm'));
  const own = section.split(/^#/m)[0]!;
  const rows = own.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** The anchors that GitHub gives the headings. */
export function readAnchors(markdown: string): string[] {
  const headings = [...withoutBlocks(markdown).matchAll(/^#+ (.+)$/gm)].map((match) => match[1]!);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

export function readLinks(markdown: string): string[] {
  return [...withoutBlocks(markdown).matchAll(/\]\(([^)]+)\)/g)].map((match) => match[1]!);
}

function withoutBlocks(markdown: string): string {
  return markdown.replace(/^```.*?^```$/gms, '');
}
