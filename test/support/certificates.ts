/** Certificates for tests, made with openssl: authorities, servers, clients. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from './temp.ts';

export interface Pair {
  /** PEM files. */
  readonly cert: string;
  readonly key: string;
}

export interface Leaf {
  readonly name: string;
  /** `subjectAltName` of openssl. */
  readonly alt?: string;
  /** Negative: it has expired. */
  readonly days?: number;
  readonly usage?: 'serverAuth' | 'clientAuth';
}

export interface Authority extends Pair {
  /** Signs a certificate. */
  issue(leaf: Leaf): Pair;
}

const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' });

function makeKey(file: string): string {
  openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', file);
  return file;
}

let serial = 0;

export function makeAuthority(name = 'Test Authority'): Authority {
  const folder = tempFolder();
  const key = makeKey(join(folder, 'ca.key'));
  const cert = join(folder, 'ca.pem');
  openssl('req', '-x509', '-new', '-key', key, '-out', cert, '-subj', `/CN=${name}`, '-days', '30');
  return {
    cert,
    key,
    issue({ name: leaf, alt, days = 30, usage }) {
      const base = join(folder, `leaf-${++serial}`);
      const own = { cert: `${base}.pem`, key: makeKey(`${base}.key`) };
      openssl('req', '-new', '-key', own.key, '-out', `${base}.csr`, '-subj', leaf);
      const lines = ['basicConstraints = CA:FALSE'];
      if (alt !== undefined) lines.push(`subjectAltName = ${alt}`);
      if (usage !== undefined) lines.push(`extendedKeyUsage = ${usage}`);
      writeFileSync(`${base}.ext`, lines.join('\n'));
      const signed = [
        '-CA',
        cert,
        '-CAkey',
        key,
        '-set_serial',
        String(Date.now() + serial),
        '-extfile',
        `${base}.ext`,
      ];
      openssl('x509', '-req', '-in', `${base}.csr`, '-out', own.cert, ...signed, '-days', String(days));
      return own;
    },
  };
}

/** For loopback. */
export function serverPair(authority: Authority, more: Partial<Leaf> = {}): Pair {
  return authority.issue({ name: '/CN=gateway', alt: 'IP:127.0.0.1,DNS:localhost', ...more });
}

export function clientPair(authority: Authority, name: string, more: Partial<Leaf> = {}): Pair {
  return authority.issue({ name, usage: 'clientAuth', ...more });
}

export function pemOf({ cert, key }: Pair): { readonly cert: string; readonly key: string } {
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}
