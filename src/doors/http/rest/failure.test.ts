import { describe, expect, it } from 'vitest';
import { ERROR_CODES, GatewayError } from '../../../base/errors.ts';
import { toBytes } from '../../../protocol/json.ts';
import { toolFailure } from './failure.ts';

const failed = (body: object) => toolFailure(toBytes(body));

describe('an error that another Toolgate sent as a result', () => {
  // A worker sends `dependency_error` too, for a tool that lacks a package: see below.
  it.each(ERROR_CODES.filter((code) => code !== 'unauthorized' && code !== 'dependency_error'))(
    'gets its status from the error table: %s',
    (code) => {
      const error = new GatewayError(code, 'It failed.');
      expect(failed(error.body)).toEqual({ status: error.httpStatus, body: error.body, retryAfter: null });
    },
  );

  it('does not tell a client that its own credential is wrong', () => {
    expect(failed(new GatewayError('unauthorized', 'It was revoked.').body).status).toBe(502);
  });
});

describe('an error of a tool', () => {
  it.each([
    ['tool_not_found', 404],
    ['invalid_arguments', 422],
    ['execution_timeout', 504],
    ['dependency_error', 500],
    ['anything_else', 500],
    ['constructor', 500],
    ['__proto__', 500],
  ])('with the code %s has the status %i', (code, status) => {
    expect(failed({ success: false, result: null, code, message: 'It failed.' }).status).toBe(status);
  });

  it('is passed on as the tool’s own if it is not an error object', () => {
    expect(failed({ code: 'rate_limited', message: 'It failed.' })).toMatchObject({
      status: 500,
      body: { code: 'tool_error' },
    });
  });
});
