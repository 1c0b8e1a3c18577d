export type Program =
  | 'python'
  | 'chromium'
  | 'bubblewrap'
  | 'script'
  | 'openssl'
  | 'promtool'
  | 'zsh'
  | 'fish'
  | 'mandoc'
  | 'dpkg'
  | 'ruby';
export const programs: Record<Program, { readonly what: string; find(): string | undefined }>;
export function whyMissing(name: Program): string | undefined;
