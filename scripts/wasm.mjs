// `npm run wasm`: compiles bracket-scan.wat to src/protocol/bracket-scan-code.ts. A test checks that the two match.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import wabt from 'wabt';

const folder = fileURLToPath(new URL('../src/protocol', import.meta.url));

/** The text of bracket-scan-code.ts for the current bracket-scan.wat. */
export async function bracketScanCode() {
  const { parseWat } = await wabt();
  const source = readFileSync(join(folder, 'bracket-scan.wat'), 'utf8');
  const { buffer } = parseWat('bracket-scan.wat', source, { simd: true }).toBinary({});
  const lines = Buffer.from(buffer)
    .toString('base64')
    .match(/.{1,110}/g);
  return [
    '/** bracket-scan.wat as WebAssembly, made by `npm run wasm`. */',
    'export const BRACKET_SCAN = [',
    ...lines.map((line) => `  '${line}',`),
    "].join('');",
    '',
  ].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(join(folder, 'bracket-scan-code.ts'), await bracketScanCode());
}
