/** Two texts line by line: what was removed, what was added. Lines far from every change are folded. */
import type { DiffLine } from '../../../src/dashboard/api-types.ts';
import { plural } from '../format.ts';

type Shown = DiffLine | { readonly op: 'gap'; readonly text: string };
const AROUND = 3;

function folded(lines: readonly DiffLine[]): Shown[] {
  const near = new Set<number>();
  lines.forEach(({ op }, index) => {
    if (op !== ' ') for (let at = index - AROUND; at <= index + AROUND; at += 1) near.add(at);
  });
  const shown: Shown[] = [];
  let skipped = 0;
  const flush = () => {
    if (skipped > 0) shown.push({ op: 'gap', text: plural(skipped, 'equal line') });
    skipped = 0;
  };
  lines.forEach((line, index) => {
    if (near.has(index)) {
      flush();
      shown.push(line);
    } else skipped += 1;
  });
  flush();
  return shown;
}

const LOOKS = {
  ' ': { name: 'same', mark: '', said: '' },
  '+': { name: 'added', mark: '+', said: 'added: ' },
  '-': { name: 'removed', mark: '−', said: 'removed: ' },
  gap: { name: 'gap', mark: '⋯', said: '' },
};

export function Diff({ lines, label }: { lines: readonly DiffLine[]; label: string }) {
  return (
    <section class="diff" aria-label={label} tabIndex={0}>
      {folded(lines).map(({ op, text }, index) => (
        <div key={index} class={LOOKS[op].name}>
          <span class="mark" aria-hidden="true">
            {LOOKS[op].mark}
          </span>
          <span class="hidden">{LOOKS[op].said}</span>
          {text}
        </div>
      ))}
    </section>
  );
}
