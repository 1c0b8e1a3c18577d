/** A form made from a JSON Schema. What a form cannot express is written as JSON, in the same place. */
import { useId, useState } from 'preact/hooks';
import {
  bounds,
  choicesOf,
  define,
  initial,
  inWords,
  isObject,
  kindOf,
  resolve,
  type Schema,
  typeOf,
  variantsOf,
  without,
} from '../schema.ts';

interface Properties {
  readonly schema: Schema;
  readonly value: unknown;
  readonly change: (value: unknown) => void;
}

export function SchemaForm({ schema, value, change }: Properties) {
  const resolved = resolve(schema, schema);
  if (kindOf(resolved, 0) !== 'object')
    return isEmptyObject(resolved) ? (
      <p class="muted">It takes no arguments.</p>
    ) : (
      <JsonField name="Arguments" about="" value={value ?? {}} change={change} isRequired={false} />
    );
  return <ObjectFields schema={resolved} root={schema} value={value} change={change} depth={0} />;
}

function isEmptyObject(schema: Schema): boolean {
  const isObjectType = typeOf(schema) === 'object' || Object.keys(schema).length === 0;
  return isObjectType && !schema.additionalProperties && !schema.patternProperties && !schema.anyOf && !schema.oneOf;
}

interface Part extends Properties {
  readonly root: Schema;
  readonly depth: number;
}

function ObjectFields({ schema, root, value, change, depth }: Part) {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, unknown>);
  const required = Array.isArray(schema.required) ? schema.required : [];
  const current = isObject(value) ? value : {};
  const set = (key: string, next: unknown) => {
    const copy = { ...current };
    if (next === undefined) change(without(copy, key));
    else {
      define(copy, key, next);
      change(copy);
    }
  };
  // What has to be filled in comes first.
  const ordered = [
    ...properties.filter(([key]) => required.includes(key)),
    ...properties.filter(([key]) => !required.includes(key)),
  ];
  return (
    <div class="stack">
      {ordered.map(([key, part]) => (
        <Field
          key={key}
          name={key}
          schema={resolve(part, root)}
          root={root}
          depth={depth + 1}
          isRequired={required.includes(key)}
          value={Object.hasOwn(current, key) ? current[key] : undefined}
          change={(next) => set(key, next)}
        />
      ))}
    </div>
  );
}

const FORMATS = new Map<string, 'date' | 'email' | 'url' | 'password'>([
  ['date', 'date'],
  ['email', 'email'],
  ['uri', 'url'],
  ['password', 'password'],
]);

interface FieldProperties extends Part {
  readonly name: string;
  readonly isRequired: boolean;
}

function Field(properties: FieldProperties) {
  const { name, schema, root, value, change, depth, isRequired } = properties;
  const id = useId();
  const about = [schema.description, bounds(schema)].filter(Boolean).map(String).join('\n');
  const label = typeof schema.title === 'string' && schema.title !== '' ? `${schema.title} (${name})` : name;
  const common = { id, 'aria-describedby': about ? `${id}-about` : undefined, 'aria-required': isRequired };
  const kind = kindOf(schema, depth);
  const shown = { name: label, about, isRequired, value, change };

  switch (kind) {
    case 'json':
      return <JsonField {...shown} />;
    case 'variants':
      return <Variants {...properties} label={label} about={about} />;
    case 'object':
      return (
        <fieldset class="group stack">
          <legend>
            {label} {isRequired ? <Required /> : null}
          </legend>
          {about ? <p class="about muted small wrap">{about}</p> : null}
          <ObjectFields schema={schema} root={root} value={value} change={change} depth={depth} />
        </fieldset>
      );
    case 'array':
      return <ArrayField {...properties} label={label} about={about} />;
    case 'boolean':
      return (
        <div class="field">
          <label for={id}>
            {label} {isRequired ? <Required /> : null}
          </label>
          <select
            {...common}
            class="input"
            value={value === true ? 'yes' : value === false ? 'no' : ''}
            onChange={(event) => {
              const chosen = event.currentTarget.value;
              change(chosen === '' ? undefined : chosen === 'yes');
            }}
          >
            <option value="">not set</option>
            <option value="yes">yes</option>
            <option value="no">no</option>
          </select>
          <About id={id} text={about} />
        </div>
      );
    case 'choice': {
      const choices = choicesOf(schema) ?? [];
      const index = choices.findIndex((one) => JSON.stringify(one.value) === JSON.stringify(value));
      return (
        <div class="field">
          <label for={id}>
            {label} {isRequired ? <Required /> : null}
          </label>
          <select
            {...common}
            class="input"
            value={String(index)}
            onChange={(event) => change(choices[Number(event.currentTarget.value)]?.value)}
          >
            <option value="-1">not set</option>
            {choices.map(({ title }, at) => (
              <option key={at} value={String(at)}>
                {title}
              </option>
            ))}
          </select>
          <About id={id} text={about} />
        </div>
      );
    }
    case 'number':
    case 'integer':
      return (
        <div class="field">
          <label for={id}>
            {label} {isRequired ? <Required /> : null}
          </label>
          <input
            {...common}
            class="input"
            type="number"
            inputMode="decimal"
            step={kind === 'integer' ? 1 : 'any'}
            value={typeof value === 'number' ? String(value) : ''}
            onInput={(event) => {
              const { value: typed, valueAsNumber } = event.currentTarget;
              change(typed === '' || Number.isNaN(valueAsNumber) ? undefined : valueAsNumber);
            }}
          />
          <About id={id} text={about} />
        </div>
      );
    case 'text': {
      const type = FORMATS.get(String(schema.format)) ?? 'text';
      const isLong = type === 'text' && (Number(schema.maxLength) > 200 || /\n/.test(String(value ?? '')));
      const box = {
        ...common,
        class: 'input',
        autocomplete: 'off' as const,
        value: typeof value === 'string' ? value : '',
        onInput: (event: { currentTarget: { value: string } }) => {
          const typed = event.currentTarget.value;
          change(typed === '' && !isRequired ? undefined : typed);
        },
      };
      return (
        <div class="field">
          <label for={id}>
            {label} {isRequired ? <Required /> : null}
          </label>
          {isLong ? <textarea {...box} rows={4} /> : <input {...box} type={type as 'text'} />}
          <About id={id} text={about} />
        </div>
      );
    }
    default:
      return kind satisfies never;
  }
}

function Required() {
  return (
    <span class="required small" title="It has to be given.">
      required
    </span>
  );
}

function About({ id, text }: { id: string; text: string }) {
  return text ? (
    <p class="about" id={`${id}-about`}>
      {text}
    </p>
  ) : null;
}

function ArrayField({ schema, root, value, change, depth, isRequired, label, about }: FieldProperties & Labelled) {
  const items = resolve(schema.items, root);
  const list = Array.isArray(value) ? value : [];
  const replace = (index: number, next: unknown) => change(list.map((one, at) => (at === index ? next : one)));
  return (
    <fieldset class="group stack tight">
      <legend>
        {label} {isRequired ? <Required /> : null}
      </legend>
      {about ? <p class="about muted small wrap">{about}</p> : null}
      {list.map((one, index) => (
        <div key={index} class="stack tight">
          <Field
            name={`entry ${index + 1}`}
            schema={items}
            root={root}
            depth={depth + 1}
            isRequired={true}
            value={one}
            change={(next) => replace(index, next ?? null)}
          />
          <div>
            <button
              type="button"
              class="button tiny"
              onClick={() => change(list.length === 1 ? undefined : list.filter((_, at) => at !== index))}
            >
              Remove entry {index + 1}
            </button>
          </div>
        </div>
      ))}
      <div>
        <button
          type="button"
          class="button tiny"
          onClick={() => change([...list, initial(items, root, depth) ?? blank(items)])}
        >
          Add an entry to {label}
        </button>
      </div>
    </fieldset>
  );
}

interface Labelled {
  readonly label: string;
  readonly about: string;
}

function blank(schema: Schema): unknown {
  const type = typeOf(schema);
  return type === 'string' ? '' : type === 'object' ? {} : type === 'array' ? [] : type === 'boolean' ? false : null;
}

/** One of several shapes: first which, then its fields. */
function Variants({ schema, root, value, change, depth, isRequired, label, about }: FieldProperties & Labelled) {
  const id = useId();
  const variants = variantsOf(schema).map((one) => resolve(one, root));
  const [chosen, setChosen] = useState(0);
  const variant = variants[chosen] ?? {};
  return (
    <fieldset class="group stack tight">
      <legend>
        {label} {isRequired ? <Required /> : null}
      </legend>
      {about ? <p class="about muted small wrap">{about}</p> : null}
      <div class="field">
        <label for={id}>Which kind</label>
        <select
          id={id}
          class="input"
          value={String(chosen)}
          onChange={(event) => {
            const next = Number(event.currentTarget.value);
            setChosen(next);
            change(initial(variants[next], root, depth));
          }}
        >
          {variants.map((one, index) => (
            <option key={index} value={String(index)}>
              {typeof one.title === 'string' ? one.title : inWords(one, root)}
            </option>
          ))}
        </select>
      </div>
      <Field
        name="value"
        schema={without(variant, 'title')}
        root={root}
        depth={depth + 1}
        isRequired={isRequired}
        value={value}
        change={change}
      />
    </fieldset>
  );
}

interface JsonProperties {
  readonly name: string;
  readonly about: string;
  readonly isRequired: boolean;
  readonly value: unknown;
  readonly change: (value: unknown) => void;
}

export function JsonField({ name, about, isRequired, value, change }: JsonProperties) {
  const id = useId();
  const [typed, setTyped] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
  const [wrong, setWrong] = useState('');
  return (
    <div class="field">
      <label for={id}>
        {name} {isRequired ? <Required /> : null} <span class="muted small">as JSON</span>
      </label>
      <textarea
        id={id}
        class="input"
        rows={Math.min(14, Math.max(3, typed.split('\n').length))}
        spellcheck={false}
        value={typed}
        aria-invalid={wrong !== ''}
        aria-describedby={`${id}-about`}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setTyped(text);
          if (text.trim() === '') {
            setWrong('');
            change(undefined);
            return;
          }
          try {
            const read: unknown = JSON.parse(text);
            setWrong('');
            change(read);
          } catch (error) {
            setWrong(`This is not JSON: ${(error as Error).message}`);
          }
        }}
      />
      <p class={wrong ? 'about bad' : 'about'} id={`${id}-about`}>
        {wrong || about}
      </p>
    </div>
  );
}
