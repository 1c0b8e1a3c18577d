/** Small pieces of messages. */

/** `1 tool`, `3 tools`; pass the plural if it is irregular. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** `"a", "b" or "c"`. */
export function quotedList(names: readonly string[], joint = 'or'): string {
  const quoted = names.map((name) => `"${name}"`);
  const last = quoted.pop();
  if (last === undefined) return '';
  return quoted.length === 0 ? last : `${quoted.join(', ')} ${joint} ${last}`;
}
