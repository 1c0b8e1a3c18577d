import { describe, expect, it } from 'vitest';
import { elicitationId, isUrlMode, requiredUrls, withElicitationId, withoutElicitationId } from './elicitation.ts';
import { toBytes } from './json.ts';
import { capabilityFor, inputRequired, URL_MODE } from './question.ts';

const question = { mode: 'url', url: 'https://a/ü', message: 'Go' };
const parse = (bytes: Buffer) => JSON.parse(bytes.toString()) as object;

describe('a question that asks to open a URL', () => {
  it('is recognised by its mode', () => {
    expect([question, { mode: 'form' }, { message: 'x' }, {}].map((one) => isUrlMode(toBytes(one)))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect(isUrlMode(null)).toBe(false);
    expect(capabilityFor('elicitation/create', toBytes(question))).toBe(URL_MODE);
  });

  it('gets an id for a legacy client, unless it has one', () => {
    const params = withElicitationId(toBytes(question));
    expect(parse(params)).toEqual({ ...question, elicitationId: expect.stringMatching(/^[\w-]{36}$/) });
    expect(withElicitationId(params)).toBe(params);
    const form = toBytes({ message: 'x' });
    expect(withElicitationId(form)).toBe(form);
  });

  it('loses its id for a modern client', () => {
    const params = toBytes({ elicitationId: 'i', ...question });
    expect(elicitationId(params)).toBe('i');
    expect(parse(withoutElicitationId(params))).toEqual(question);
    const asked = new Map([['k', { method: 'elicitation/create', params }]]);
    expect(parse(inputRequired(asked, 's'))).toMatchObject({ inputRequests: { k: { params: question } } });
    const form = toBytes({ elicitationId: 'i', message: 'x' });
    expect(withoutElicitationId(form)).toBe(form);
  });
});

describe('the error that asks to open URLs', () => {
  it('has the questions in its data', () => {
    const error = { code: -32_042, message: 'm', data: { elicitations: [question, { mode: 'form' }, 7, question] } };
    expect(requiredUrls(toBytes(error)).map(parse)).toEqual([question, question]);
  });

  it.each([
    { code: -32_042, message: 'm' },
    { code: -32_042, message: 'm', data: { elicitations: 'none' } },
    { code: -32_042, message: 'm', data: null },
    { code: -32_000, message: 'm', data: { elicitations: [question] } },
  ])('has none in %j', (error) => {
    expect(requiredUrls(toBytes(error))).toEqual([]);
  });
});
