/** Dark or light: as the system has it, or as chosen here. The choice stays in this browser. */
import { effect, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'toolgate-theme';
export const theme = signal<Theme>(kept());
/** Counts changes of colours, for what draws with them. */
export const colours = signal(0);

function kept(): Theme {
  const found = localStorage.getItem(KEY);
  return found === 'light' || found === 'dark' ? found : 'system';
}

effect(() => {
  const { dataset } = document.documentElement;
  if (theme.value === 'system') {
    delete dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    dataset.theme = theme.value;
    localStorage.setItem(KEY, theme.value);
  }
  colours.value = colours.peek() + 1;
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  colours.value += 1;
});

export function nextTheme(): void {
  theme.value = theme.value === 'system' ? 'light' : theme.value === 'light' ? 'dark' : 'system';
}

/** A colour of the style as the canvas wants it. */
export function colour(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
