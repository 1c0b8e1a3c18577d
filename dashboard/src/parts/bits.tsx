/** The small parts that every view uses. */
import type { ComponentChildren } from 'preact';
import { safeLink } from '../format.ts';

export function Panel({
  title,
  sub,
  action,
  children,
  bare,
}: {
  title: string;
  sub?: ComponentChildren;
  action?: ComponentChildren;
  children: ComponentChildren;
  /** Without space around, for a table. */
  bare?: boolean;
}) {
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {sub ? <span class="sub">{sub}</span> : null}
        {action ? <span class="grow" /> : null}
        {action}
      </header>
      {bare ? children : <div class="body">{children}</div>}
    </section>
  );
}

export type Tone = 'good' | 'warn' | 'bad' | 'off' | 'accent' | '';

export function Chip({ tone = '', title, children }: { tone?: Tone; title?: string; children: ComponentChildren }) {
  return (
    <span class={`chip ${tone}`} title={title}>
      {children}
    </span>
  );
}

export function Dot({ tone, label }: { tone: Tone; label?: string }) {
  return (
    <>
      <span class={`dot ${tone}`} aria-hidden="true" />
      {label ? <span class="hidden">{label}</span> : null}
    </>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <b>{title}</b>
      {children}
    </div>
  );
}

/** A text that came from elsewhere, as it came, in a box that can be scrolled. */
export function Code({
  text,
  label,
  plain,
}: {
  text: string;
  label: string /** Not a landmark, because there may be several of it. */;
  plain?: boolean;
}) {
  return (
    <section class="code" role={plain ? 'group' : undefined} aria-label={label} tabIndex={0}>
      <pre>{text}</pre>
    </section>
  );
}

/** A link to another site, or plain text if the address is none that may be opened. */
export function Away({ href, children }: { href: unknown; children?: ComponentChildren }) {
  const safe = safeLink(href);
  if (safe === null) return <>{children ?? String(href ?? '')}</>;
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer">
      {children ?? safe}
    </a>
  );
}

export function Failure({ error, again }: { error: Error; again?: () => void }) {
  return (
    <div class="note bad" role="alert">
      {error.message}{' '}
      {again ? (
        <button type="button" class="button tiny" onClick={again}>
          Try again
        </button>
      ) : null}
    </div>
  );
}

export function Facts({ rows }: { rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== null && value !== undefined && value !== '')
        .map(([name, value]) => [<dt key={`t-${name}`}>{name}</dt>, <dd key={`d-${name}`}>{value}</dd>])}
    </dl>
  );
}
