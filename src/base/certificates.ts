/** Reads certificates and keys in PEM form. What cannot be used is told with the file, the reason and what to do. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { GatewayError } from './errors.ts';

/** A certificate with its chain and its key, as TLS takes them. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
  /** When the certificate expires, in milliseconds since 1970. */
  readonly expires: number;
}

/** The names of the settings are for messages. Throws unless the two belong together and are valid now. */
export function readKeyPair(certFile: string, keyFile: string, certName: string, keyName: string): KeyPair {
  const cert = readPem(certFile, certName);
  const key = readPem(keyFile, keyName);
  const [leaf] = certificatesIn(cert, certFile, certName);
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key);
  } catch {
    throw wrong(keyName, keyFile, 'is not a private key in PEM form without a passphrase');
  }
  if (!leaf!.checkPrivateKey(privateKey))
    throw wrong(keyName, keyFile, `belongs to another certificate than ${certFile}. If both are being replaced, wait`);
  const expires = Date.parse(leaf!.validTo);
  if (expires <= Date.now()) throw wrong(certName, certFile, `expired on ${leaf!.validTo}. Renew it`);
  if (Date.parse(leaf!.validFrom) > Date.now())
    throw wrong(certName, certFile, `is not valid before ${leaf!.validFrom}. Check the clock of this machine`);
  return { cert, key, expires };
}

/** The certificates of authorities, one or more. */
export function readAuthorities(file: string, name: string): string {
  const text = readPem(file, name);
  certificatesIn(text, file, name);
  return text;
}

/** The fingerprint of the first certificate in a file: that of a server, before its chain. */
export function fingerprintIn(file: string, name: string): string {
  return certificatesIn(readPem(file, name), file, name)[0]!.fingerprint256;
}

function readPem(file: string, name: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    throw wrong(name, file, `cannot be read (${code})`);
  }
}

const CERTIFICATE = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]*-----END (?:TRUSTED )?CERTIFICATE-----/g;

/** At least one. */
function certificatesIn(text: string, file: string, name: string): X509Certificate[] {
  try {
    const all = (text.match(CERTIFICATE) ?? []).map((one) => new X509Certificate(one));
    if (all.length > 0) return all;
  } catch {
    // Said below.
  }
  throw wrong(name, file, 'has no certificate in PEM form');
}

function wrong(name: string, file: string, what: string): GatewayError {
  return new GatewayError('config_invalid', `${name}: ${file} ${what}.`);
}
