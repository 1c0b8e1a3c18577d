// `npm run wasm`: src/protocol/skeleton-code.ts from skeleton.wat. A test holds the two together.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import wabt from 'wabt';

const folder = fileURLToPath(new URL('../src/protocol', import.meta.url));

/** The text of skeleton-code.ts for the present skeleton.wat. */
export async function skeletonCode() {
  const { parseWat } = await wabt();
  const source = readFileSync(join(folder, 'skeleton.wat'), 'utf8');
  const { buffer } = parseWat('skeleton.wat', source, { simd: true }).toBinary({});
  const lines = Buffer.from(buffer)
    .toString('base64')
    .match(/.{1,110}/g);
  return [
    '/** skeleton.wat as WebAssembly, made by `npm run wasm`. */',
    'export const SKELETON = [',
    ...lines.map((line) => `  '${line}',`),
    "].join('');",
    '',
  ].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(join(folder, 'skeleton-code.ts'), await skeletonCode());
}
