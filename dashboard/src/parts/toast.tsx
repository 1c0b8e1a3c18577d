/** Short notes on what was done. They are read out politely, and errors stay until they are closed. */
import { signal } from '@preact/signals';
import { Icon } from '../icons.tsx';

interface Note {
  readonly id: number;
  readonly text: string;
  readonly bad: boolean;
}

const notes = signal<readonly Note[]>([]);
let last = 0;

export function toast(text: string, bad = false): void {
  last += 1;
  const id = last;
  notes.value = [...notes.value.slice(-3), { id, text, bad }];
  if (!bad) setTimeout(() => drop(id), 5_000);
}

/** Does something and says how it went. Returns undefined if it failed. */
export async function attempt<T>(
  work: () => Promise<T>,
  done?: string | ((value: T) => string),
): Promise<T | undefined> {
  try {
    const value = await work();
    if (done !== undefined) toast(typeof done === 'string' ? done : done(value));
    return value;
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), true);
    return undefined;
  }
}

function drop(id: number): void {
  notes.value = notes.value.filter((note) => note.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {notes.value.map((note) => (
        <div key={note.id} class={`toast fade ${note.bad ? 'bad' : ''}`}>
          <p>{note.text}</p>
          <button type="button" class="button plain tiny" aria-label="Close this note" onClick={() => drop(note.id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
