/** Tabs, with the arrow keys as people know them. */
import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';

export interface Tab {
  readonly key: string;
  readonly title: ComponentChildren;
  readonly body: () => ComponentChildren;
}

interface Properties {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly chosen: string;
  readonly choose: (key: string) => void;
}

export function Tabs({ label, tabs, chosen, choose }: Properties) {
  const base = useId();
  const list = useRef<HTMLDivElement>(null);
  const index = Math.max(
    0,
    tabs.findIndex(({ key }) => key === chosen),
  );
  const current = tabs[index];
  function onKey(event: KeyboardEvent) {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const next =
      event.key === 'Home' ? 0 : event.key === 'End' ? tabs.length - 1 : (index + step + tabs.length) % tabs.length;
    if (next === index && step === 0) return;
    event.preventDefault();
    choose(tabs[next]?.key ?? '');
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus();
  }
  if (!current) return null;
  return (
    <div class="stack">
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKey}>
        {tabs.map(({ key, title }) => (
          <button
            key={key}
            type="button"
            role="tab"
            id={`${base}-${key}`}
            aria-selected={key === current.key}
            aria-controls={`${base}-panel`}
            tabIndex={key === current.key ? 0 : -1}
            onClick={() => choose(key)}
          >
            {title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${current.key}`} class="stack">
        {current.body()}
      </div>
    </div>
  );
}
