/** A dialog of the browser: it keeps the focus inside, Esc closes it, and the focus returns to where it was. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Icon } from '../icons.tsx';

interface Properties {
  readonly title: ComponentChildren;
  readonly close: () => void;
  readonly children: ComponentChildren;
  readonly footer?: ComponentChildren;
  /** At the side and as high as the window, for what is read next to a table. */
  readonly sheet?: boolean;
}

export function Dialog({ title, close, children, footer, sheet }: Properties) {
  const box = useRef<HTMLDialogElement>(null);
  const name = useId();
  const isGone = useRef(false);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const element = box.current;
    element?.showModal();
    // What is asked for comes first; what is only read begins with its title.
    const field = sheet ? null : element?.querySelector<HTMLElement>('.body input, .body select, .body textarea');
    (field ?? element?.querySelector<HTMLElement>('h2'))?.focus();
    return () => {
      isGone.current = true;
      element?.close();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={sheet ? 'sheet fade' : 'fade'}
      aria-labelledby={name}
      onCancel={(event) => {
        if (event.target !== box.current) return;
        event.preventDefault();
        close();
      }}
      onClose={(event) => {
        // A browser may close it without asking, and tells only then.
        if (event.target === box.current && !isGone.current) close();
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || event.defaultPrevented) return;
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        if (event.target === box.current) close();
      }}
    >
      <header>
        <h2 id={name} tabIndex={-1}>
          {title}
        </h2>
        <span class="grow" />
        <button type="button" class="button plain" onClick={close} aria-label="Close">
          <Icon name="close" />
        </button>
      </header>
      <section class="body" tabIndex={0} aria-labelledby={name}>
        {children}
      </section>
      {footer ? <footer>{footer}</footer> : null}
    </dialog>
  );
}
