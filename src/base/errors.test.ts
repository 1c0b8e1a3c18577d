import { expect, it } from 'vitest';
import { ERROR_CODES, type ErrorCode, GatewayError, messageOf, statusOfCode, toGatewayError } from './errors.ts';

const rpcOf = (code: ErrorCode) => new GatewayError(code, 'It failed.').rpcCode;

it('what JSON-RPC and MCP have a code for, has that code', () => {
  const wanted: Partial<Record<ErrorCode, number>> = {
    parse: -32700,
    request_invalid: -32600,
    method_unknown: -32601,
    params_invalid: -32602,
    item_unknown: -32602,
    arguments_invalid: -32602,
    internal: -32603,
    resource_unknown: -32002,
    session_unknown: -32001,
    header_mismatch: -32020,
    capability_missing: -32021,
    revision_unsupported: -32022,
  };
  for (const [code, rpc] of Object.entries(wanted)) expect([code, rpcOf(code as ErrorCode)]).toEqual([code, rpc]);
});

it('every error has a code in the range of JSON-RPC errors, and an HTTP status of a failure', () => {
  for (const code of ERROR_CODES) {
    expect(rpcOf(code)).toBeGreaterThanOrEqual(-32700);
    expect(rpcOf(code)).toBeLessThanOrEqual(-32000);
    expect(new GatewayError(code, '').httpStatus).toBe(statusOfCode(code));
    expect(statusOfCode(code)).toBeGreaterThanOrEqual(400);
    expect(statusOfCode(code)).toBeLessThan(600);
  }
  expect(statusOfCode('toString')).toBeNull();
});

it('an unexpected error is shown without what it says, and an own one as it is', () => {
  const own = new GatewayError('usage', 'Use it like this.', { details: { at: 1 } });
  expect(toGatewayError(own)).toBe(own);
  expect(own.body).toEqual({ success: false, result: null, code: 'usage', message: 'Use it like this.' });
  const unexpected = toGatewayError(new Error('the password is hunter2'));
  expect([unexpected.code, unexpected.message]).toEqual(['internal', expect.not.stringContaining('hunter2')]);
  expect(messageOf(unexpected.cause)).toContain('hunter2');
  expect(messageOf('a text')).toBe('a text');
});
