import { describe, expect, it } from 'vitest';
import { isLoopback } from './loopback.ts';

describe('isLoopback', () => {
  it.each([
    'localhost',
    'localhost.',
    'LOCALHOST',
    'Localhost.',
    '127.0.0.1',
    '127.0.0.1.',
    '127.0.0.2',
    '127.255.255.254',
    '::1',
    '[::1]',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    '::FFFF:127.0.0.1',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '::1%lo',
  ])('accepts %s', (host) => {
    expect(isLoopback(host)).toBe(true);
  });

  it.each([
    '',
    '.',
    'localhost..',
    'localhost.evil.example',
    'evil-localhost',
    'sub.localhost',
    '127.evil.example',
    '127.0.0.1.evil.example',
    '127.0.0',
    '127.1',
    '127.0.0.256',
    '0177.0.0.1',
    '128.0.0.1',
    '0.0.0.0',
    '::',
    '[::]',
    '::2',
    '::ffff:8.8.8.8',
    '::127.0.0.1',
    '[127.0.0.1',
    '127.0.0.1]',
    'localhost:80',
    '10.127.0.1',
    'unknown',
  ])('rejects %j', (host) => {
    expect(isLoopback(host)).toBe(false);
  });

  it('accepts addresses as URL normalizes them', () => {
    const hosts = [
      'http://127.1/',
      'http://0x7f.1/',
      'http://[::1]/',
      'http://[::ffff:127.0.0.1]/',
      'http://LOCALHOST/',
    ];
    expect(hosts.filter((url) => !isLoopback(new URL(url).hostname))).toEqual([]);
  });
});
