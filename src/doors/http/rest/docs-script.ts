/**
 * What the page of docs-page.ts runs. It is text here and code there, so it keeps to what every browser knows. Whatever tools
 * say of themselves is put in as text, never as markup.
 */
export const SCRIPT = String.raw`
'use strict';
(() => {
  const base = location.pathname.replace(/\/docs\/?$/, '');
  const find = (id) => document.getElementById(id);
  const state = find('state');
  let token = '';

  find('document').href = base + '/openapi.json' + location.search;

  function make(tag, props, ...children) {
    const element = Object.assign(document.createElement(tag), props);
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  function ask(path, options = {}) {
    const headers = { accept: 'application/json', ...(token && { authorization: 'Bearer ' + token }), ...options.headers };
    return fetch(base + path + location.search, { ...options, headers });
  }

  async function load() {
    state.textContent = 'Loading…';
    state.className = '';
    try {
      const response = await ask('/openapi.json');
      const body = await response.json();
      find('sign').hidden = response.status !== 401;
      if (!response.ok) throw new Error(response.status === 401 ? 'A token is needed.' : body.message);
      show(body);
    } catch (error) {
      state.textContent = error.message;
      state.className = 'bad';
    }
  }

  function show(document_) {
    const paths = Object.entries(document_.paths);
    document.title = document_.info.title;
    find('title').textContent = document_.info.title;
    find('about').textContent = document_.info.description || '';
    state.textContent = paths.length === 1 ? '1 tool' : paths.length + ' tools';
    find('filter').hidden = paths.length < 2;
    find('tools').replaceChildren(...paths.map(([path, { post }]) => toolOf(path, post, document_)));
  }

  function toolOf(path, operation, document_) {
    const name = decodeURIComponent(path.slice(path.lastIndexOf('/') + 1));
    const box = make('details', {}, make('summary', {}, make('code', { textContent: name }), ' ' + operation.summary));
    box.dataset.words = [name, operation.operationId, operation.summary, operation.description || ''].join(' ').toLowerCase();
    // Forms are made for what is opened: there may be a thousand tools.
    box.addEventListener('toggle', () => box.append(...bodyOf(path, operation, document_)), { once: true });
    return box;
  }

  function bodyOf(path, operation, document_) {
    const schema = operation.requestBody.content['application/json'].schema;
    const fields = Object.entries(schema.properties || {}).map(([name, part]) =>
      fieldOf(name, part, (schema.required || []).includes(name)));
    const isFree = fields.length === 0;
    const free = make('textarea', { value: '{}', ariaLabel: 'Arguments as JSON' });
    const button = make('button', { textContent: 'Call' });
    const said = make('p', {});
    const result = make('pre', { hidden: true });
    const form = make('form', { noValidate: true }, ...(isFree ? [free] : fields.map((field) => field.label)), button);
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      button.disabled = true;
      said.textContent = '…';
      said.className = '';
      const began = performance.now();
      try {
        const args = isFree ? free.value : JSON.stringify(Object.fromEntries(fields.flatMap((field) => field.read())));
        const response = await ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: args });
        const text = await response.text();
        said.textContent = response.status + ' in ' + Math.round(performance.now() - began) + ' ms';
        said.className = response.ok ? '' : 'bad';
        result.textContent = pretty(text);
        result.hidden = false;
      } catch (error) {
        said.textContent = error.message;
        said.className = 'bad';
      }
      button.disabled = false;
    });
    const schemas = make('details', {}, make('summary', { textContent: 'Schemas' }),
      make('pre', { textContent: JSON.stringify({ arguments: schema, returns: operation.responses[200].content['application/json'].schema }, null, 2) }));
    return [
      make('p', { className: 'about', textContent: operation.description || '' }),
      make('p', {}, make('code', { textContent: 'POST ' + base + path })),
      form, said, result, schemas,
    ];
  }

  function fieldOf(name, schema, required) {
    const types = [].concat(schema.type || []).filter((type) => type !== 'null');
    const type = types.length === 1 ? types[0] : '';
    const options = schema.enum || (type === 'boolean' ? [true, false] : null);
    const isText = type === 'string' && !options;
    const isNumber = type === 'number' || type === 'integer';
    const control = options
      ? make('select', {}, make('option', { textContent: '', value: '' }),
        ...options.map((option, index) => make('option', { textContent: String(option), value: String(index) })))
      : isText && !(schema.maxLength > 200) ? make('input', { type: 'text' })
        : isNumber ? make('input', { type: 'text', inputMode: 'decimal' })
          : make('textarea', { placeholder: isText ? '' : 'JSON' });
    control.name = name;
    if (schema.default !== undefined && !options)
      control.placeholder = typeof schema.default === 'string' ? schema.default : JSON.stringify(schema.default);
    const about = [schema.description, type || 'any', required ? 'required' : null].filter(Boolean).join(' · ');
    const read = () => {
      const value = control.value;
      if (value === '' && !(required && isText)) return [];
      if (options) return [[name, options[Number(value)]]];
      if (isText) return [[name, value]];
      try {
        return [[name, JSON.parse(value)]];
      } catch {
        // A text where anything may stand needs no quotes.
        if (type === '' ) return [[name, value]];
        throw new Error(name + ': expected ' + (isNumber ? 'a number' : 'JSON'));
      }
    };
    return { label: make('label', {}, make('b', { textContent: name }), make('small', { textContent: about }), control), read };
  }

  function pretty(text) {
    try {
      const value = JSON.parse(text);
      return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
    } catch {
      return text;
    }
  }

  find('sign').addEventListener('submit', (event) => {
    event.preventDefault();
    token = find('token').value;
    load();
  });
  find('filter').addEventListener('input', (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const box of find('tools').children) box.hidden = !words.every((word) => box.dataset.words.includes(word));
  });
  load();
})();
`;
