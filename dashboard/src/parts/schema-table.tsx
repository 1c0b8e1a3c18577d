/** A schema that people can read: one line per field, with what it takes and what it is for. */
import { bounds, choicesOf, inWords, isObject, kindOf, resolve, type Schema } from '../schema.ts';

interface Line {
  readonly path: string;
  readonly type: string;
  readonly required: boolean;
  readonly about: string;
}

const MOST_LINES = 300;
const DEEPEST = 4;

function linesOf(raw: unknown, root: Schema, path: string, depth: number, into: Line[]): void {
  const schema = resolve(raw, root);
  if (!isObject(schema.properties) || depth > DEEPEST) return;
  const required = Array.isArray(schema.required) ? schema.required : [];
  for (const [key, part] of Object.entries(schema.properties)) {
    if (into.length >= MOST_LINES) return;
    const field = resolve(part, root);
    const choices = choicesOf(field);
    const name = path === '' ? key : `${path}.${key}`;
    into.push({
      path: name,
      type: inWords(part, root),
      required: required.includes(key),
      about: [
        field.description,
        choices && choices.length > 1 ? choices.map(({ title }) => title).join(' · ') : '',
        bounds(field),
      ]
        .filter(Boolean)
        .map(String)
        .join('\n'),
    });
    if (kindOf(field, depth) === 'object') linesOf(field, root, name, depth + 1, into);
    else if (isObject(field.items)) linesOf(field.items, root, `${name}[]`, depth + 1, into);
  }
}

export function SchemaTable({ schema, label }: { schema: Schema; label: string }) {
  const lines: Line[] = [];
  linesOf(schema, schema, '', 0, lines);
  if (lines.length === 0) return <p class="muted">{inWords(schema, schema)}, no fields named.</p>;
  return (
    <table class="plain" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">Takes</th>
          <th scope="col">About</th>
        </tr>
      </thead>
      <tbody>
        {lines.map(({ path, type, required, about }) => (
          <tr key={path}>
            <td>
              <code>{path}</code>
              {required ? <span class="bad small"> required</span> : null}
            </td>
            <td class="muted">{type}</td>
            <td class="wrap">{about}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
