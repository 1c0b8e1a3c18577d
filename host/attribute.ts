/** Writes the name of the running tool in front of each line that it prints, for `toolgate dev`. */
import { currentItem } from '../src/tools/tool-run.ts';

export function attributeOutput(): void {
  for (const output of [process.stdout, process.stderr]) {
    const write = output.write.bind(output) as (...args: unknown[]) => boolean;
    output.write = ((chunk: unknown, ...rest: unknown[]) => {
      const name = currentItem();
      const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk as Uint8Array).toString();
      return write(name === null ? text : marked(text, `${name}: `), ...rest);
    }) as typeof output.write;
  }
}

function marked(text: string, prefix: string): string {
  const mark = (line: string) => (line === '' || line.startsWith(prefix) ? line : prefix + line);
  return text.split('\n').map(mark).join('\n');
}
