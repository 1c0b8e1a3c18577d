/** The box that `/` goes to. */
import { Icon } from '../icons.tsx';

interface Properties {
  readonly label: string;
  readonly value: string;
  readonly change: (value: string) => void;
  readonly placeholder?: string;
}

export function Filter({ label, value, change, placeholder = 'Filter by words' }: Properties) {
  return (
    <div class="filter">
      <Icon name="search" />
      <input
        class="input"
        type="search"
        aria-label={label}
        placeholder={placeholder}
        data-filter
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          if (value === '') event.currentTarget.blur();
          else change('');
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}
