/** Uses an item from the page: a form for what it takes, progress while it runs, questions of its server, and the answer. */
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { ItemDetail, TryAnswer, TryEvents, TryQuestion, TryRequest } from '../../../src/dashboard/api-types.ts';
import { at, open, post, remove } from '../api.ts';
import { duration, pretty, safeLink, size } from '../format.ts';
import { Away, Chip, Code } from '../parts/bits.tsx';
import { JsonField, SchemaForm } from '../parts/schema-form.tsx';
import { attempt } from '../parts/toast.tsx';
import { initial, isObject, type Schema } from '../schema.ts';
import { agents } from '../state.ts';

interface Run {
  readonly id: string | null;
  readonly home: string | null;
  readonly progress: TryEvents['progress'] | null;
  readonly logs: readonly string[];
  readonly questions: readonly TryQuestion[];
  readonly result: TryEvents['result'] | null;
  readonly failed: TryEvents['failed'] | null;
  readonly isOver: boolean;
}

const NEW: Run = {
  id: null,
  home: null,
  progress: null,
  logs: [],
  questions: [],
  result: null,
  failed: null,
  isOver: false,
};
const MOST_LOGS = 100;

export function TryIt({ item }: { item: ItemDetail }) {
  const schema = schemaOf(item);
  const [value, setValue] = useState<unknown>(() => initial(schema, schema) ?? {});
  const [asJson, setAsJson] = useState(false);
  const [agent, setAgent] = useState('');
  const [run, setRun] = useState<Run | null>(null);
  const going = useRef<AbortController | null>(null);
  const agentId = useId();
  useEffect(() => () => going.current?.abort(), []);
  const isRunning = run !== null && !run.isOver;

  async function start() {
    const gone = new AbortController();
    going.current = gone;
    let now: Run = NEW;
    const set = (change: Partial<Run>) => {
      now = { ...now, ...change };
      setRun(now);
    };
    set({});
    const request: TryRequest = {
      kind: item.kind === 'template' ? 'resource' : item.kind,
      name: item.kind === 'template' ? expand(item.name, isObject(value) ? value : {}) : item.name,
      ...(TAKES[item.kind] && { arguments: isObject(value) ? value : {} }),
      agent: agent === '' ? null : agent,
    };
    try {
      const response = await open('POST', 'tries', request, gone.signal);
      for await (const { name, data } of eventsOf(response)) {
        switch (name) {
          case 'started':
            set({ id: (data as TryEvents['started']).id, home: (data as TryEvents['started']).replica });
            break;
          case 'progress':
            set({ progress: data as TryEvents['progress'] });
            break;
          case 'log': {
            const { level, data: said } = data as TryEvents['log'];
            set({ logs: [...now.logs.slice(1 - MOST_LOGS), `${level}: ${pretty(said)}`] });
            break;
          }
          case 'question':
            set({ questions: [...now.questions, data as TryQuestion] });
            break;
          case 'withdrawn': {
            const { question } = data as TryEvents['withdrawn'];
            set({ questions: now.questions.filter((one) => one.question !== question) });
            break;
          }
          case 'result':
            set({ result: data as TryEvents['result'], isOver: true, questions: [] });
            break;
          case 'failed':
            set({ failed: data as TryEvents['failed'], isOver: true, questions: [] });
            break;
        }
      }
      if (!now.isOver) set({ isOver: true, failed: { code: 'ended', message: 'The answer broke off.', ms: 0 } });
    } catch (error) {
      const message = gone.signal.aborted ? 'You cancelled it.' : (error as Error).message;
      set({ isOver: true, questions: [], failed: { code: 'not_done', message, ms: 0 } });
    }
  }

  function cancel() {
    if (run?.id) void remove(`tries/${at(run.id)}`, undefined, run.home).catch(() => undefined);
    going.current?.abort();
  }

  const answered = (question: string) =>
    setRun((old) => old && { ...old, questions: old.questions.filter((one) => one.question !== question) });

  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isRunning) void start();
      }}
    >
      {item.annotations?.destructiveHint === true ? (
        <p class="note warn">Its server says that it may change or delete things. This is a real call.</p>
      ) : null}
      {item.kind === 'resource' ? null : asJson ? (
        <JsonField name="Arguments" about="" isRequired={false} value={value} change={setValue} />
      ) : (
        <SchemaForm schema={schema} value={value} change={setValue} />
      )}
      <div class="line">
        <button type="submit" class="button primary" aria-disabled={isRunning}>
          {item.kind === 'tool' ? 'Call it' : item.kind === 'prompt' ? 'Get it' : 'Read it'}
        </button>
        {isRunning ? (
          <button type="button" class="button" onClick={cancel}>
            Cancel
          </button>
        ) : null}
        <label class="line small" for={agentId}>
          as
          <select class="input" id={agentId} value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
            <option value="">the operator, without policy</option>
            {agents.value.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {item.kind === 'resource' ? null : (
          <label class="check small">
            <input type="checkbox" checked={asJson} onChange={(event) => setAsJson(event.currentTarget.checked)} />
            as JSON
          </label>
        )}
      </div>
      <div class="stack" role="status" aria-live="polite" aria-label="Answer">
        {isRunning ? <Progress progress={run.progress} /> : null}
        {run?.failed ? (
          <p class="note bad wrap">
            {run.failed.message} <span class="muted">({run.failed.code})</span>
          </p>
        ) : null}
        {run?.result ? <Answer result={run.result} /> : null}
      </div>
      {(run?.questions ?? []).map((question) => (
        <Question
          key={question.question}
          id={run?.id ?? ''}
          home={run?.home ?? null}
          question={question}
          done={answered}
        />
      ))}
      {run && run.logs.length > 0 ? <Code text={run.logs.join('\n')} label="What the server says meanwhile" /> : null}
    </form>
  );
}

/** Kinds whose arguments are sent. Those of a template become part of its address. */
const TAKES = { tool: true, prompt: true, resource: false, template: false };

/** The variables of an RFC 6570 template, with the characters around them. */
const VARIABLES = /\{([+#./;?&]?)([^{}]*)\}/g;

const variablesOf = (template: string): string[] =>
  [...template.matchAll(VARIABLES)].flatMap(([, , names = '']) =>
    names.split(',').map((name) => name.replace(/[*]$|:\d+$/, '')),
  );

/** The address that a template and values make. */
function expand(template: string, values: Readonly<Record<string, unknown>>): string {
  return template.replace(VARIABLES, (_, sign: string, names: string) => {
    const isNamed = sign === '?' || sign === '&' || sign === ';';
    const encode = sign === '+' || sign === '#' ? encodeURI : encodeURIComponent;
    const given = names.split(',').flatMap((one) => {
      const name = one.replace(/[*]$|:\d+$/, '');
      const text = String(values[name] ?? '');
      return text === '' ? [] : [isNamed ? `${name}=${encode(text)}` : encode(text)];
    });
    const between = sign === '?' ? '&' : sign === '' || sign === '+' || sign === '#' ? ',' : sign;
    return given.length === 0 ? '' : (sign === '+' ? '' : sign) + given.join(between);
  });
}

/** Prompts list their arguments, templates have them in their address, and tools have a schema. */
function schemaOf(item: ItemDetail): Schema {
  if (item.kind === 'template') {
    const names = [...new Set(variablesOf(item.name))];
    return { type: 'object', properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])) };
  }
  if (item.kind !== 'prompt') return item.inputSchema ?? { type: 'object' };
  const given = Array.isArray(item.definition.arguments) ? item.definition.arguments.filter(isObject) : [];
  return {
    type: 'object',
    properties: Object.fromEntries(
      given.map((one) => [String(one.name), { type: 'string', title: one.title, description: one.description }]),
    ),
    required: given.filter((one) => one.required === true).map((one) => String(one.name)),
  };
}

function Progress({ progress }: { progress: TryEvents['progress'] | null }) {
  const share = progress?.total ? Math.min(1, progress.progress / progress.total) : null;
  return (
    <div class="stack tight">
      <progress class="progress" aria-label="Progress" {...(share === null ? {} : { value: share, max: 1 })} />
      <span class="muted small">
        {progress
          ? [progress.total ? `${progress.progress} of ${progress.total}` : `${progress.progress}`, progress.message]
              .filter(Boolean)
              .join(' · ')
          : 'It runs…'}
      </span>
    </div>
  );
}

function Answer({ result }: { result: TryEvents['result'] }) {
  const [raw, setRaw] = useState(false);
  const body = result.result;
  const isError = body.isError === true;
  const parts = contentOf(body);
  return (
    <div class="stack">
      <div class="line">
        <Chip tone={isError ? 'warn' : 'good'}>{isError ? 'the tool says: error' : 'ok'}</Chip>
        <span class="muted">
          {duration(result.ms)}, {size(result.bytes)}
        </span>
        <label class="check small">
          <input type="checkbox" checked={raw} onChange={(event) => setRaw(event.currentTarget.checked)} />
          as it came
        </label>
      </div>
      {raw || parts.length === 0 ? (
        <Code text={pretty(body)} label="Result" />
      ) : (
        parts.map((part, index) => <Content key={index} part={part} index={index + 1} />)
      )}
    </div>
  );
}

/** The parts of a result that people read: of a tool, of a resource, of a prompt. */
function contentOf(body: Readonly<Record<string, unknown>>): Record<string, unknown>[] {
  const list = (value: unknown) => (Array.isArray(value) ? value.filter(isObject) : []);
  const own = [
    ...list(body.content),
    ...list(body.contents),
    ...list(body.messages).map(({ role, content }) => ({ ...(isObject(content) ? content : {}), role })),
  ];
  return body.structuredContent === undefined ? own : [...own, { type: 'structured', value: body.structuredContent }];
}

const IMAGES = /^image\/(png|jpeg|gif|webp)$/;

function Content({ part, index }: { part: Record<string, unknown>; index: number }) {
  const role = typeof part.role === 'string' ? `${part.role}: ` : '';
  const label = `Part ${index}`;
  if (part.type === 'structured') return <Code text={pretty(part.value)} label="Structured content" />;
  const resource = isObject(part.resource) ? part.resource : part;
  const { data, mimeType } = part;
  if (part.type === 'image' && typeof data === 'string' && IMAGES.test(String(mimeType)))
    return <img class="picture" alt="From the tool" src={`data:${mimeType};base64,${data}`} />;
  if (typeof resource.text === 'string')
    return (
      <>
        {resource.uri ? <p class="muted small wrap">{String(resource.uri)}</p> : null}
        <Code text={role + resource.text} label={label} />
      </>
    );
  if (part.type === 'resource_link')
    return (
      <p class="note wrap">
        {String(part.name ?? 'A resource')}: <Away href={part.uri}>{String(part.uri)}</Away>
      </p>
    );
  return <Code text={pretty(part)} label={label} />;
}

interface QuestionProperties {
  readonly id: string;
  readonly home: string | null;
  readonly question: TryQuestion;
  readonly done: (question: string) => void;
}

function Question({ id, home, question, done }: QuestionProperties) {
  const { params, method } = question;
  const schema: Schema = isObject(params.requestedSchema) ? params.requestedSchema : { type: 'object' };
  const [value, setValue] = useState<unknown>(() =>
    method === 'sampling/createMessage'
      ? { role: 'assistant', content: { type: 'text', text: '' }, model: 'a person' }
      : method === 'roots/list'
        ? { roots: [] }
        : (initial(schema, schema) ?? {}),
  );
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.querySelector<HTMLElement>('input, select, textarea, button')?.focus(), []);
  const isForm = method === 'elicitation/create' && params.requestedSchema !== undefined;
  const link = safeLink(params.url);
  const send = async (action: TryAnswer['action']) => {
    const answer: TryAnswer = {
      action,
      ...(action === 'accept' && (isForm || method !== 'elicitation/create') && isObject(value) && { content: value }),
    };
    const sent = await attempt(async () => {
      await post(`tries/${at(id)}/answers/${at(question.question)}`, answer, home);
      return true;
    });
    if (sent) done(question.question);
  };
  const asked =
    typeof params.message === 'string'
      ? params.message
      : method === 'sampling/createMessage'
        ? 'The server asks for a message from a model. Write it as one, or decline.'
        : 'The server asks which folders it may use.';
  return (
    <section class="note warn stack" aria-label="A question from the server" ref={box}>
      <b>A question from the server</b>
      <p class="wrap">{asked}</p>
      {method === 'sampling/createMessage' ? <Code text={pretty(params)} label="What the server sent" /> : null}
      {link ? (
        <p>
          <Away href={link} />
        </p>
      ) : null}
      {isForm ? (
        <SchemaForm schema={schema} value={value} change={setValue} />
      ) : method === 'elicitation/create' ? null : (
        <JsonField name="Answer" about="" isRequired={true} value={value} change={setValue} />
      )}
      <div class="line">
        <button type="button" class="button primary" onClick={() => void send('accept')}>
          Answer
        </button>
        <button type="button" class="button" onClick={() => void send('decline')}>
          Decline
        </button>
        <button type="button" class="button plain" onClick={() => void send('cancel')}>
          Not now
        </button>
      </div>
    </section>
  );
}

/** The events of an answer, as they come. */
async function* eventsOf(response: Response): AsyncGenerator<{ name: string; data: unknown }> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const lines = block.split('\n');
      const name = lines
        .find((line) => line.startsWith('event:'))
        ?.slice(6)
        .trim();
      const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart());
      if (name !== undefined && data.length > 0) yield { name, data: JSON.parse(data.join('\n')) };
    }
  }
}
