export type Program = 'python' | 'chromium' | 'bubblewrap' | 'script' | 'promtool';
export const programs: Record<Program, { readonly what: string; find(): string | undefined }>;
export function whyMissing(name: Program): string | undefined;
