// The page that shows the tools, from src/doors/http/rest/page/: one file with its style and its script in it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export async function buildDocsPage(root) {
  const folder = join(root, 'src/doors/http/rest/page');
  const read = (name) => readFileSync(join(folder, name), 'utf8');
  const style = read('style.css');
  const script = await bundleScript(join(folder, 'script.ts'));
  const page = read('index.html');
  const styled = inline(page, '<link rel="stylesheet" href="style.css">', 'style', style);
  return inline(styled, '<script src="script.ts"></script>', 'script', script);
}

/** Modern JavaScript as one function, without modules. */
async function bundleScript(input) {
  const { rolldown } = await import('rolldown');
  const build = await rolldown({ input, platform: 'browser', logLevel: 'warn', transform: { target: 'es2022' } });
  const { output } = await build.generate({ format: 'iife', minify: true });
  return output[0].code.trim();
}

function inline(page, tag, name, text) {
  if (page.split(tag).length !== 2) throw new Error(`The page must have ${tag} once.`);
  if (text.toLowerCase().includes(`</${name}`)) throw new Error(`The ${name} of the page would end early.`);
  // A function: "$" has a meaning in a replacement text.
  return page.replace(tag, () => `<${name}>${text}</${name}>`);
}
