/**
 * The operator's key. Who has it may decide on what agents wait for, so it stays out of their projects and out of their
 * environment: it lies in the user's own configuration folder, or is given to the gateway and to people in a variable.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { createFile } from '../base/files.ts';

type ProcessEnv = Readonly<Record<string, string | undefined>>;

/** Nothing that we start gets to see it. */
export const OPERATOR_KEY = 'TOOLGATE_OPERATOR_KEY';
const LEAST = 16;

export function operatorKeyFile({ TOOLGATE_OPERATOR_KEY_FILE: named, XDG_CONFIG_HOME: config }: ProcessEnv): string {
  return named || join(config || join(homedir(), '.config'), 'toolgate', 'operator.key');
}

/** Made where there is none yet. Throws where it is not safe to use. */
export async function operatorKey(env: ProcessEnv): Promise<string> {
  const given = env[OPERATOR_KEY];
  if (given) return checked(given.trim(), OPERATOR_KEY);
  const file = operatorKeyFile(env);
  await createFile(file, `${randomBytes(32).toString('base64url')}\n`);
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0)
    throw new GatewayError('usage', `${file} can be read by others. Make it yours alone: chmod 600 ${file}`);
  return checked((await readFile(file, 'utf8')).trim(), file);
}

function checked(key: string, where: string): string {
  if (key.length >= LEAST) return key;
  throw new GatewayError(
    'usage',
    `The operator key in ${where} has fewer than ${LEAST} characters. Make a longer one.`,
  );
}

export function isOperatorKey(given: string, key: string): boolean {
  return timingSafeEqual(digest(key, given), digest(key, key));
}

/** Proof that whoever has the key said this. */
export function sign(key: string, said: readonly unknown[]): string {
  return digest(key, JSON.stringify(said)).toString('base64url');
}

export function isSigned(key: string, said: readonly unknown[], signature: string): boolean {
  return isOperatorKey(sign(key, said), signature);
}

function digest(key: string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
