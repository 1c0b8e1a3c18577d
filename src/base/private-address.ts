/** What counts as private: addresses that lead into this machine or a network around it, and not to the internet. */
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { GatewayError } from './errors.ts';

const privateAddresses = new BlockList();
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  privateAddresses.addSubnet(net, prefix, 'ipv4');
// Only 2000::/3 is the internet. Parts of it stand for IPv4 addresses (6to4, Teredo) or for documentation.
const publicIpv6 = new BlockList();
publicIpv6.addSubnet('2000::', 3, 'ipv6');
for (const [net, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
] as const)
  privateAddresses.addSubnet(net, prefix, 'ipv6');

/** Whether an IP address is private. IPv4 addresses inside of IPv6 ones count by themselves. */
export function isPrivateAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 4) return privateAddresses.check(address, 'ipv4');
  if (version === 0) return true;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return isPrivateAddress(mapped);
  return !publicIpv6.check(address, 'ipv6') || privateAddresses.check(address, 'ipv6');
}

/** Where clouds tell a machine its own credentials, and addresses of one cable. Nobody's authorization server is there. */
const machineAddresses = new BlockList();
machineAddresses.addSubnet('169.254.0.0', 16, 'ipv4');
machineAddresses.addAddress('100.100.100.200', 'ipv4');
machineAddresses.addSubnet('fe80::', 10, 'ipv6');
machineAddresses.addAddress('fd00:ec2::254', 'ipv6');

/** Whether an IP address belongs to the machine or cable that we are at, and leads nowhere else. */
export function isMachineAddress(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  const plain = mapped ?? address;
  const version = isIP(plain);
  return version !== 0 && machineAddresses.check(plain, version === 4 ? 'ipv4' : 'ipv6');
}

/** The addresses of a host on the internet. Throws if one of them is private, or the name is unknown. */
export async function publicAddresses(host: string, remedy: string): Promise<readonly string[]> {
  const name = host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  const found =
    isIP(name) === 0
      ? await lookup(name, { all: true, verbatim: true }).catch((error: NodeJS.ErrnoException) => {
          throw new GatewayError(
            'usage',
            `The host ${name} is not known (${error.code ?? 'no answer'}). Check its name.`,
          );
        })
      : [{ address: name }];
  const addresses = found.map(({ address }) => address);
  if (addresses.length === 0 || addresses.some(isPrivateAddress))
    throw new GatewayError('usage', `${name} leads to a private address. ${remedy}`);
  return addresses;
}
