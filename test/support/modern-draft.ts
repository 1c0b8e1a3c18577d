/** A request before it is sent: header lines, and a body in which a key may occur twice or in an odd spelling. */

export interface Line {
  name: string;
  value: string;
}

/** JSON text, or an object. */
export type Value = string | Member[];

export interface Member {
  /** Also JSON text, so that it can be written with escapes. */
  key: string;
  value: Value;
}

export interface Draft {
  readonly lines: Line[];
  readonly body: Member[];
  /** Whether it is wrapped in an array, or truncated. */
  form: 'whole' | 'batch' | 'cut';
}

export function json(value: unknown): string {
  return JSON.stringify(value);
}

/** An object whose inner objects can be edited too. */
export function objectOf(value: Readonly<Record<string, unknown>>): Member[] {
  return Object.entries(value).map(([key, inner]) => ({
    key: json(key),
    value: isObject(inner) ? objectOf(inner) : json(inner),
  }));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function keyOf({ key }: Member): string {
  return JSON.parse(key) as string;
}

/** The members of a value; none if it is not an object. */
export function membersOf(value: Value | undefined): Member[] {
  if (value === undefined || typeof value !== 'string') return value ?? [];
  const parsed: unknown = JSON.parse(value);
  return isObject(parsed) ? objectOf(parsed) : [];
}

/** All values under a key with exactly this spelling. */
export function valuesAt(value: Value | undefined, key: string): Value[] {
  return membersOf(value)
    .filter((one) => keyOf(one) === key)
    .map((one) => one.value);
}

export function print(value: Value): string {
  if (typeof value === 'string') return value;
  return `{${value.map((one) => `${one.key}:${print(one.value)}`).join(',')}}`;
}

/** The value as read by a parser that uses the last duplicate. */
export function parse(value: Value | undefined): unknown {
  return value === undefined ? undefined : (JSON.parse(print(value)) as unknown);
}

export function bodyText({ body, form }: Draft): string {
  const text = print(body);
  if (form === 'cut') return text.slice(0, -1);
  return form === 'batch' ? `[${text}]` : text;
}
