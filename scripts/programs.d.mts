export type Program =
  | 'python'
  | 'chromium'
  | 'bubblewrap'
  | 'script'
  | 'openssl'
  | 'haproxy'
  | 'nginx'
  | 'promtool'
  | 'zsh'
  | 'fish'
  | 'mandoc'
  | 'dpkg'
  | 'ruby'
  | 'redis';
export const programs: Record<Program, { readonly what: string; find(): string | undefined }>;
export function whyMissing(name: Program): string | undefined;
