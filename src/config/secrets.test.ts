import { expect, it } from 'vitest';
import { configFromValue } from './load.ts';

const env = { TOKEN_X: 'token-value', PLAIN: 'plain-value', HOME: '/home/me', DEPLOY_KEY: 'deploy-value' };

function secrets(server: Record<string, unknown>): readonly string[] {
  return configFromValue({ servers: [server] }, { cwd: '/', env }).secrets();
}

it('has what the environment keeps under such names', () => {
  expect(secrets({ command: 'x' })).toEqual(['token-value', 'deploy-value']);
});

it('has what a server is given out of the environment, and what its names tell', () => {
  const given = secrets({
    command: 'x',
    env: { A: 'with ${PLAIN}', B: '${HOME}/data', C: '${MISSING:-default-value}', API_KEY: 'written', D: 'open' },
  });
  expect(given.slice(2)).toEqual(['with plain-value', 'plain-value', 'written']);
});

it('has headers, and what an address carries', () => {
  const given = secrets({
    url: 'https://u:pass-word@h/?api_key=${PLAIN}&page=1',
    headers: { Authorization: 'Bearer ${TOKEN_X}', Accept: 'text/plain' },
  });
  expect(given).toEqual(['token-value', 'deploy-value', 'Bearer token-value', 'pass-word', 'plain-value']);
});

it('is not printed with the configuration', () => {
  const config = configFromValue({}, { cwd: '/', env });
  expect(JSON.stringify(config)).not.toContain('token-value');
});

it('takes the days to keep from the environment first, and says what is wrong with them', () => {
  const read = (value: object, days?: string) =>
    configFromValue(value, { cwd: '/', env: { LOG_RETENTION_DAYS: days } }).audit.retention;
  expect(read({})).toBe(30);
  expect(read({ audit: { retention: '7d' } })).toBe(7);
  expect(read({ audit: { retention: 90 } })).toBe(90);
  expect(read({ audit: { retention: '7d' } }, '3')).toBe(3);
  expect(() => read({}, 'many')).toThrow('LOG_RETENTION_DAYS is not a number of days');
  for (const retention of ['30', '0d', '1h', 0, true])
    expect(() => read({ audit: { retention } }), String(retention)).toThrow('audit.retention: ');
});
