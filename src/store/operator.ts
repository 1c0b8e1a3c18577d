/**
 * The operator's key, which signs approvals. Agents must not get hold of it, so it stays out of projects and out of the
 * environment of servers. It is in the user's own configuration folder, or in an environment variable of the gateway
 * and of the operator.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { createFile } from '../base/files.ts';
import { userFolder } from '../base/user-folder.ts';

type ProcessEnv = Readonly<Record<string, string | undefined>>;

/** Servers and workers never get this variable. */
export const OPERATOR_KEY = 'TOOLGATE_OPERATOR_KEY';
const LEAST = 16;

export function operatorKeyFile(env: ProcessEnv): string {
  return env.TOOLGATE_OPERATOR_KEY_FILE || join(userFolder(env), 'operator.key');
}

/** Creates a key if there is none yet. Throws if the file is readable by others, or the key is too short. */
export async function operatorKey(env: ProcessEnv): Promise<string> {
  const given = env[OPERATOR_KEY];
  if (given) return checked(given.trim(), OPERATOR_KEY);
  const file = operatorKeyFile(env);
  await createFile(file, `${randomBytes(32).toString('base64url')}\n`);
  return readKey(file);
}

function checked(key: string, where: string): string {
  if (key.length >= LEAST) return key;
  throw new GatewayError('usage', `The key in ${where} has fewer than ${LEAST} characters. Make a longer one.`);
}

/** The key of a person who approves calls under their own name. The variable is for people, never for servers. */
export const APPROVER_KEY = 'TOOLGATE_APPROVER_KEY';

export function approverKeyFile(env: ProcessEnv): string {
  return env.TOOLGATE_APPROVER_KEY_FILE || join(userFolder(env), 'approver.key');
}

/** Null if this user has none. */
export async function approverKey(env: ProcessEnv): Promise<string | null> {
  const given = env[APPROVER_KEY];
  if (given) return checked(given.trim(), APPROVER_KEY);
  const file = approverKeyFile(env);
  const found = await stat(file).catch(() => null);
  return found === null ? null : readKey(file);
}

/** The key of this user, made if there is none yet. */
export async function makeApproverKey(env: ProcessEnv): Promise<string> {
  const known = await approverKey(env);
  if (known !== null) return known;
  const file = approverKeyFile(env);
  await createFile(file, `${randomBytes(32).toString('base64url')}\n`);
  return readKey(file);
}

async function readKey(file: string): Promise<string> {
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0) throw new GatewayError('usage', `${file} can be read by others. Run: chmod 600 ${file}`);
  return checked((await readFile(file, 'utf8')).trim(), file);
}

export function isOperatorKey(given: string, key: string): boolean {
  return isSame(key, given, key);
}

/** The signature of these parts. Only a holder of the key can make it. */
export function sign(key: string, parts: readonly unknown[]): string {
  return digest(key, JSON.stringify(parts)).toString('base64url');
}

/** Compares digests, so that the time it takes reveals nothing. */
export function isSigned(key: string, parts: readonly unknown[], signature: string): boolean {
  return isSame(key, sign(key, parts), signature);
}

function isSame(key: string, a: string, b: string): boolean {
  return timingSafeEqual(digest(key, a), digest(key, b));
}

function digest(key: string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
