export function apiFiles(root: string): Record<string, string>;
