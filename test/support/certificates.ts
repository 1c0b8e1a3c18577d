/** Certificates for tests, made with openssl: authorities, servers, clients. */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
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

/** By Node: a process for each key would take longer than the rest. */
function makeKey(file: string): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
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
      const lines = [
        '[req]',
        'distinguished_name = req',
        'x509_extensions = leaf',
        '[leaf]',
        'basicConstraints = CA:FALSE',
      ];
      if (alt !== undefined) lines.push(`subjectAltName = ${alt}`);
      if (usage !== undefined) lines.push(`extendedKeyUsage = ${usage}`);
      writeFileSync(`${base}.cnf`, `${lines.join('\n')}\n`);
      const config = ['-config', `${base}.cnf`, '-subj', leaf];
      const signed = ['-CA', cert, '-CAkey', key, '-set_serial', String(Date.now() + serial), '-days', String(days)];
      if (days > 0) openssl('req', '-x509', '-new', '-key', own.key, '-out', own.cert, ...config, ...signed);
      else {
        // The quicker way makes none that has expired already.
        openssl('req', '-new', '-key', own.key, '-out', `${base}.csr`, ...config);
        const extensions = ['-extfile', `${base}.cnf`, '-extensions', 'leaf'];
        openssl('x509', '-req', '-in', `${base}.csr`, '-out', own.cert, ...extensions, ...signed);
      }
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
