/** Short notes on what was done. They are read out politely, and errors stay until they are closed. */
import { effect, signal } from '@preact/signals';
import { Icon } from '../icons.tsx';
import { route, to } from '../route.ts';

interface Note {
  readonly id: number;
  readonly text: string;
  readonly tone: 'bad' | 'news' | '';
  /** Where it is about, such as a view. */
  readonly link: string | null;
}

const notes = signal<readonly Note[]>([]);
let last = 0;

export function toast(text: string, bad = false): void {
  show({ text, tone: bad ? 'bad' : '', link: null }, bad ? null : 5_000);
}

/** Something that happened, and where to look at it. */
export function tell(text: string, link: string): void {
  show({ text, tone: 'news', link }, 10_000);
}

function show(note: Omit<Note, 'id'>, ms: number | null): void {
  last += 1;
  const id = last;
  notes.value = [...notes.value.slice(-3), { ...note, id }];
  if (ms !== null) setTimeout(() => drop(id), ms);
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

// Who looks at what a note is about needs no note.
effect(() => {
  const here = to(route.value.view);
  const left = notes.peek().filter(({ link }) => link !== here);
  if (left.length < notes.peek().length) notes.value = left;
});

function drop(id: number): void {
  notes.value = notes.value.filter((note) => note.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {notes.value.map((note) => (
        <div key={note.id} class={`toast fade ${note.tone}`}>
          <p>
            {note.text}{' '}
            {note.link ? (
              <a href={note.link} onClick={() => drop(note.id)}>
                Look
              </a>
            ) : null}
          </p>
          <button type="button" class="button plain tiny" aria-label="Close this note" onClick={() => drop(note.id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
