/**
 * The script of the page that lists the tools and calls them. It reads the OpenAPI document with its reader's token.
 * Text from tools is always inserted as text, never as markup.
 */

interface ApiDocument {
  readonly info: { readonly title: string; readonly description?: string };
  readonly paths: Readonly<Record<string, { readonly post: ToolOperation }>>;
}

interface ToolOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly requestBody: JsonContent<ArgumentsSchema>;
  readonly responses: { readonly 200: JsonContent<unknown> };
}

interface JsonContent<S> {
  readonly content: { readonly 'application/json': { readonly schema: S } };
}

interface ArgumentsSchema {
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly required?: readonly string[];
}

interface FieldSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly maxLength?: number;
  readonly default?: unknown;
  readonly description?: string;
  readonly anyOf?: readonly FieldSchema[];
}

interface Field {
  readonly label: HTMLElement;
  /** The argument with its name; nothing if it is left empty. Throws if it cannot be parsed. */
  read(): readonly (readonly [string, unknown])[];
}

const base = location.pathname.replace(/\/docs\/?$/, '');
const state = find('state');
const filter = find<HTMLInputElement>('filter');
const tools = find('tools');
let token = '';

function find<E extends HTMLElement = HTMLElement>(id: string): E {
  return document.getElementById(id) as E;
}

function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]>,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function ask(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  headers.set('accept', 'application/json');
  if (token !== '') headers.set('authorization', `Bearer ${token}`);
  return fetch(base + path + location.search, { ...options, headers });
}

async function load(): Promise<void> {
  showText(state, 'Loading…');
  try {
    const response = await ask('/openapi.json');
    const body = (await response.json()) as ApiDocument & { readonly message: string };
    find('sign').hidden = response.status !== 401;
    if (!response.ok) throw new Error(response.status === 401 ? 'A token is needed.' : body.message);
    show(body);
  } catch (error) {
    showText(state, (error as Error).message, true);
  }
}

function showText(element: HTMLElement, text: string, isBad = false): void {
  element.textContent = text;
  element.className = isBad ? 'bad' : '';
}

function show({ info, paths }: ApiDocument): void {
  const all = Object.entries(paths);
  document.title = info.title;
  find('title').textContent = info.title;
  find('about').textContent = info.description ?? '';
  showText(state, all.length === 1 ? '1 tool' : `${all.length} tools`);
  filter.hidden = all.length < 2;
  tools.replaceChildren(...all.map(([path, { post }]) => toolBox(path, post)));
}

function toolBox(path: string, operation: ToolOperation): HTMLElement {
  const { operationId, summary, description = '' } = operation;
  const name = decodeURIComponent(path.slice(path.lastIndexOf('/') + 1));
  // A title that only repeats the name says nothing.
  const about = wordsOf(summary) === wordsOf(name) ? description.split('\n', 1)[0]! : summary;
  const box = make('details', {}, make('summary', {}, make('code', { textContent: name }), ` ${about}`));
  box.dataset.words = [name, operationId, summary, description].join(' ').toLowerCase();
  // A form is built when its tool is opened, because there may be a thousand tools.
  box.addEventListener('toggle', () => box.append(...toolBody(path, operation)), { once: true });
  return box;
}

function wordsOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, ' ')
    .trim();
}

function toolBody(path: string, { description = '', requestBody, responses }: ToolOperation): HTMLElement[] {
  const { schema } = requestBody.content['application/json'];
  const returned = responses[200].content['application/json'].schema;
  const status = make('p', {});
  const result = make('pre', { hidden: true });
  const schemas = make('details', {}, make('summary', { textContent: 'Schemas' }));
  schemas.append(make('pre', { textContent: JSON.stringify({ arguments: schema, returns: returned }, null, 2) }));
  return [
    make('p', { className: 'about', textContent: description }),
    make('p', {}, make('code', { textContent: `POST ${base}${path}` })),
    callForm(path, schema, status, result),
    status,
    result,
    schemas,
  ];
}

function callForm(path: string, schema: ArgumentsSchema, status: HTMLElement, result: HTMLElement): HTMLElement {
  const { properties = {}, required = [] } = schema;
  const fields = Object.entries(properties).map(([name, part]) => fieldOf(name, part, required.includes(name)));
  const free = make('textarea', { value: '{}', ariaLabel: 'Arguments as JSON' });
  const button = make('button', { textContent: 'Call' });
  const inputs = fields.length === 0 ? [free] : fields.map(({ label }) => label);
  const form = make('form', { noValidate: true }, ...inputs, button);

  const argumentsText = () =>
    fields.length === 0 ? free.value : JSON.stringify(Object.fromEntries(fields.flatMap((field) => field.read())));

  async function call(): Promise<void> {
    const began = performance.now();
    const headers = { 'content-type': 'application/json' };
    const response = await ask(path, { method: 'POST', headers, body: argumentsText() });
    const text = await response.text();
    showText(status, `${response.status} in ${Math.round(performance.now() - began)} ms`, !response.ok);
    result.textContent = pretty(text);
    result.hidden = false;
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    button.disabled = true;
    showText(status, '…');
    // An old result below a new error would look like the answer.
    result.hidden = true;
    call()
      .catch((error: Error) => showText(status, error.message, true))
      .finally(() => {
        button.disabled = false;
      });
  });
  return form;
}

/** A value that may also be null, as Python writes it, is a field of the other type. */
function withoutNull(schema: FieldSchema): FieldSchema {
  const others = (schema.anyOf ?? []).filter(({ type }) => type !== 'null');
  return others.length === 1 ? { ...others[0], ...schema } : schema;
}

function fieldOf(name: string, written: FieldSchema, isRequired: boolean): Field {
  const schema = withoutNull(written);
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null');
  const type = types.length === 1 ? types[0]! : '';
  const choices = schema.enum ?? (type === 'boolean' ? [true, false] : null);
  const isText = type === 'string' && choices === null;
  const isNumber = type === 'number' || type === 'integer';
  const control = choices === null ? inputOf(schema, isText, isNumber) : selectOf(choices, schema.default);
  control.name = name;
  const about = [schema.description, type || 'any', isRequired ? 'required' : ''].filter(Boolean).join(' · ');
  const parts = [make('b', { textContent: name }), make('small', { textContent: about }), control];
  return {
    label: make('label', {}, ...parts),
    read() {
      const { value } = control;
      if (value === '' && !(isRequired && isText)) return [];
      if (choices !== null) return [[name, choices[Number(value)]]];
      if (isText) return [[name, value]];
      try {
        return [[name, JSON.parse(value)]];
      } catch {
        // If any type is allowed, text needs no quotes.
        if (type === '') return [[name, value]];
        throw new Error(`${name}: expected ${isNumber ? 'a number' : 'JSON'}`);
      }
    },
  };
}

function selectOf(choices: readonly unknown[], preset: unknown): HTMLSelectElement {
  const options = choices.map((choice, i) =>
    make('option', { textContent: String(choice), value: String(i), selected: choice === preset }),
  );
  return make('select', {}, make('option', { textContent: '', value: '' }), ...options);
}

function inputOf(
  { maxLength = 0, default: preset }: FieldSchema,
  isText: boolean,
  isNumber: boolean,
): HTMLInputElement | HTMLTextAreaElement {
  const placeholder = preset === undefined ? '' : typeof preset === 'string' ? preset : JSON.stringify(preset);
  if (isNumber) return make('input', { type: 'text', inputMode: 'decimal', placeholder });
  if (isText && maxLength <= 200) return make('input', { type: 'text', placeholder });
  return make('textarea', { placeholder: placeholder || (isText ? '' : 'JSON') });
}

function pretty(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  } catch {
    return text;
  }
}

find<HTMLAnchorElement>('document').href = `${base}/openapi.json${location.search}`;
find('sign').addEventListener('submit', (event) => {
  event.preventDefault();
  token = find<HTMLInputElement>('token').value;
  void load();
});
filter.addEventListener('input', () => {
  const words = filter.value.toLowerCase().split(/\s+/);
  for (const box of tools.querySelectorAll<HTMLElement>(':scope > details'))
    box.hidden = !words.every((word) => box.dataset.words?.includes(word));
});
void load();
