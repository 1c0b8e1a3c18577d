import { describe, expect, it } from 'vitest';
import { elicitationId, isUrlMode, requiredUrls, withElicitationId, withoutElicitationId } from './elicitation.ts';
import { toBytes } from './json.ts';
import { capabilityFor, inputRequired, URL_MODE } from './question.ts';

const address = { mode: 'url', url: 'https://a/ü', message: 'Go' };
const parse = (bytes: Buffer) => JSON.parse(bytes.toString()) as object;

describe('an address', () => {
  it('is told from a form by its mode', () => {
    expect([address, { mode: 'form' }, { message: 'x' }, {}].map((one) => isUrlMode(toBytes(one)))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect(isUrlMode(null)).toBe(false);
    expect(capabilityFor('elicitation/create', toBytes(address))).toBe(URL_MODE);
  });

  it('gets an id where it has none, and keeps the one it has', () => {
    const params = withElicitationId(toBytes(address));
    expect(parse(params)).toEqual({ ...address, elicitationId: expect.stringMatching(/^[\w-]{36}$/) });
    expect(withElicitationId(params)).toBe(params);
    const form = toBytes({ message: 'x' });
    expect(withElicitationId(form)).toBe(form);
  });

  it('loses its id on the way to a modern client', () => {
    const params = toBytes({ elicitationId: 'i', ...address });
    expect(elicitationId(params)).toBe('i');
    expect(parse(withoutElicitationId(params))).toEqual(address);
    const asked = new Map([['k', { method: 'elicitation/create', params }]]);
    expect(parse(inputRequired(asked, 's'))).toMatchObject({ inputRequests: { k: { params: address } } });
    const form = toBytes({ elicitationId: 'i', message: 'x' });
    expect(withoutElicitationId(form)).toBe(form);
  });
});

describe('the error that asks for addresses', () => {
  it('has them in its data', () => {
    const error = { code: -32_042, message: 'm', data: { elicitations: [address, { mode: 'form' }, 7, address] } };
    expect(requiredUrls(toBytes(error)).map(parse)).toEqual([address, address]);
  });

  it.each([
    { code: -32_042, message: 'm' },
    { code: -32_042, message: 'm', data: { elicitations: 'none' } },
    { code: -32_042, message: 'm', data: null },
    { code: -32_000, message: 'm', data: { elicitations: [address] } },
  ])('is none of those: %j', (error) => {
    expect(requiredUrls(toBytes(error))).toEqual([]);
  });
});
