/** The icons, drawn with one pen. They are decoration: what they stand for is always written next to them, or a label. */
const PATHS = {
  overview: 'M3 12l3-5 3 3 4-7M2 15h14',
  calls: 'M2 5h9M2 9h13M2 13h6M14 3l2 2-2 2',
  catalog: 'M3 3h5v5H3zM10 3h5v5h-5zM3 10h5v5H3zM10 10h5v5h-5z',
  toolsets: 'M3 7h12v8H3zM6 7V4h6v3M3 11h12',
  access: 'M9 2l6 2.5V9c0 4-3 6-6 7-3-1-6-3-6-7V4.5zM6.5 9l2 2 3-4',
  approvals: 'M2 10h4l1.5 2.5h3L12 10h4M2 10l2.5-6h9L16 10v5H2z',
  namespaces: 'M2 4h5l1.5 2H16v9H2z',
  audit: 'M4 2h7l3 3v11H4zM11 2v3h3M6.5 9h5M6.5 12h5',
  servers: 'M3 3h12v5H3zM3 10h12v5H3zM6 5.5h.01M6 12.5h.01',
  search: 'M7.5 3a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M11 11l4 4',
  sun: 'M9 6a3 3 0 1 1 0 6 3 3 0 0 1 0-6M9 1.5v2M9 14.5v2M1.5 9h2M14.5 9h2M3.7 3.7l1.4 1.4M12.9 12.9l1.4 1.4M3.7 14.3l1.4-1.4M12.9 5.1l1.4-1.4',
  moon: 'M14.5 11A6.5 6.5 0 0 1 7 3.5 6.5 6.5 0 1 0 14.5 11z',
  system: 'M2 3h14v9H2zM6 15.5h6M9 12v3.5',
  menu: 'M2.5 5h13M2.5 9h13M2.5 13h13',
  close: 'M4 4l10 10M14 4L4 14',
  pause: 'M6 3.5v11M12 3.5v11',
  play: 'M5 3l9 6-9 6z',
  up: 'M9 15V4M4.5 8L9 3.5 13.5 8',
  down: 'M9 3v11M4.5 10L9 14.5 13.5 10',
  plus: 'M9 3v12M3 9h12',
  minus: 'M3 9h12',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg viewBox="0 0 18 18" aria-hidden="true" focusable="false" width="16" height="16">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.6"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

export function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false" width="22" height="22">
      <rect width="32" height="32" rx="7" fill="#2f5fd0" />
      <path
        d="M7 25V13a9 9 0 0 1 18 0v12M13 25V14a3 3 0 0 1 6 0v11M5 25h22"
        fill="none"
        stroke="#fff"
        stroke-width="2.6"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
