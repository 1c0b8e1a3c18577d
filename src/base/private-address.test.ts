import { describe, expect, it } from 'vitest';
import { isPrivateAddress, publicAddresses } from './private-address.ts';

describe('a private address', () => {
  it.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.30.0.11',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:10.0.0.1',
    '::ffff:a00:1',
    '64:ff9b::a00:1',
    '2002:a00:1::1',
    'fe80::1',
    'fc00::1',
    'ff02::1',
    'not an address',
  ])('%s', (address) => expect(isPrivateAddress(address)).toBe(true));

  it.each(['1.1.1.1', '172.32.0.1', '140.82.112.3', '::ffff:1.1.1.1', '2606:4700::1111'])('is not %s', (address) =>
    expect(isPrivateAddress(address)).toBe(false),
  );
});

it('the addresses of a public host are given, those of a private one are refused', async () => {
  expect(await publicAddresses('1.1.1.1', 'No.')).toEqual(['1.1.1.1']);
  await expect(publicAddresses('localhost', 'Use another.')).rejects.toThrow(
    'localhost leads to a private address. Use another.',
  );
  await expect(publicAddresses('[::1]', 'Use another.')).rejects.toThrow('::1 leads to a private address');
});
