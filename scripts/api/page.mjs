// docs/api.md: every export with its comment, in the order and under the headings of index.ts.
import { head, toComment, withoutComments } from './declarations.mjs';

/** The headings of index.ts, each with the names below it. */
function readHeadings(index) {
  const parts = index.split(/^\/\/ (.+)$/m).slice(1);
  return parts.flatMap((heading, i) => (i % 2 === 0 ? [{ heading, names: namesIn(parts[i + 1]) }] : []));
}

/** The exported names: first what readers start with, types last. */
function namesIn(code) {
  const lists = [...code.matchAll(/export (type )?\{([^}]*)\}/g)];
  const names = lists.flatMap(([, type, list]) =>
    list
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== '')
      .map((word) => ({
        name: word.replace(/^type /, '').replace(/^\w+ as /, ''),
        isType: Boolean(type) || word.startsWith('type '),
      })),
  );
  const rank = ({ name, isType }) => (isType ? 3 : /^(create|define)/.test(name) ? 0 : /^open/.test(name) ? 1 : 2);
  return names.sort((a, b) => rank(a) - rank(b)).map(({ name }) => name);
}

/** Splits a comment into its text and the code of its examples. */
export function splitComment(comment) {
  const [text, ...examples] = comment.split(/^@example\b[ \t]*\n/m);
  return { text: text.trim(), examples: examples.map((example) => example.trim()) };
}

export function apiPage({ declarations }, index) {
  const byName = new Map(declarations.map(({ name }) => [name, declarations.filter((one) => one.name === name)]));
  const headings = readHeadings(index);
  const left = declarations.filter(
    ({ name, isPublic }) => isPublic && !headings.some(({ names }) => names.includes(name)),
  );
  if (left.length > 0) throw new Error(`Under no heading of index.ts: ${left.map(({ name }) => name).join(', ')}`);
  // A type that is not exported is shown with the first export that mentions it.
  const shown = new Set(declarations.filter(({ isPublic }) => isPublic).map(({ name }) => name));
  const withMentioned = (parts) => {
    const words = parts.flatMap(({ text }) => withoutComments(text).match(/\b[A-Za-z]\w*\b/g) ?? []);
    const mentioned = [...new Set(words)].filter((word) => byName.has(word) && !shown.has(word));
    for (const name of mentioned) shown.add(name);
    return [...parts, ...mentioned.flatMap((name) => withMentioned(byName.get(name)))];
  };
  const sections = headings.map(({ heading, names }) => {
    const entries = names.map((name) => entry(withMentioned(byName.get(name))));
    return `## ${heading}\n\n${entries.join('\n')}`;
  });
  return `# API

Everything that the package exports, from the comments in its source. [Library](library.md) is the page to begin with. Written by \`npm run api\`.

${headings.map(({ heading }) => `- [${heading}](#${anchor(heading)})`).join('\n')}

${sections.join('\n')}`;
}

function entry(declarations) {
  const [{ name, comment }] = declarations;
  const { text } = splitComment(comment);
  const examples = declarations.flatMap((one) => (one.name === name ? splitComment(one.comment).examples : []));
  if (text === '') throw new Error(`${name} is exported and has no comment.`);
  const code = declarations.map(
    (one, i) => (i === 0 ? '' : toComment(splitComment(one.comment).text)) + head(one) + one.text,
  );
  const blocks = [
    `\`\`\`ts signature\n${code.join('\n\n')}\n\`\`\`\n`,
    ...examples.map((example) => `\`\`\`ts example\n${example}\n\`\`\`\n`),
  ];
  return [`### ${name}\n`, `${text}\n`, ...blocks].join('\n');
}

/** The anchor that GitHub generates. */
function anchor(heading) {
  return heading.toLowerCase().replaceAll(' ', '-');
}
