/** The keys of the page. They do nothing while somebody types. */
import { signal } from '@preact/signals';
import { go } from './route.ts';

export const isHelpOpen = signal(false);

/** `g` and then one of these goes to the view. */
export const VIEWS: readonly (readonly [key: string, view: string, title: string])[] = [
  ['o', 'overview', 'Overview'],
  ['l', 'calls', 'Live calls'],
  ['c', 'catalog', 'Catalog'],
  ['t', 'toolsets', 'Toolsets'],
  ['a', 'access', 'Access'],
  ['p', 'approvals', 'Approvals'],
  ['n', 'namespaces', 'Namespaces'],
  ['u', 'audit', 'Audit'],
  ['s', 'servers', 'Servers'],
];

const WITHIN = 1_200;
let leader = 0;

export function startKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const isSecond = event.timeStamp - leader < WITHIN;
    leader = 0;
    if (isSecond) {
      const found = VIEWS.find(([key]) => key === event.key);
      if (found) {
        event.preventDefault();
        closeAll();
        go(found[1]);
        return;
      }
    }
    if (event.key === 'g') leader = event.timeStamp;
    else if (event.key === '?') {
      event.preventDefault();
      isHelpOpen.value = !isHelpOpen.value;
    } else if (event.key === '/') {
      const box = [...document.querySelectorAll<HTMLElement>('[data-filter]')].find((one) => one.offsetParent !== null);
      if (!box) return;
      event.preventDefault();
      box.focus();
    } else if (event.key === ' ' && event.target === document.body) {
      const pause = document.querySelector<HTMLElement>('[data-pause]');
      if (pause) {
        event.preventDefault();
        pause.click();
      }
    }
  });
}

/** Dialogs are asked to close as with Esc. */
function closeAll(): void {
  for (const dialog of document.querySelectorAll('dialog[open]'))
    dialog.dispatchEvent(new Event('cancel', { cancelable: true }));
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName) || isTextInput(target))
  );
}

function isTextInput(target: HTMLElement): boolean {
  return target instanceof HTMLInputElement && !/^(checkbox|radio|button|submit|range)$/.test(target.type);
}
