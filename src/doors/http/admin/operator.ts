/** Whether a request has the operator's key as its bearer token. */
import type { IncomingMessage } from 'node:http';
import { isOperatorKey, operatorKey } from '../../../store/operator.ts';

export async function hasOperatorKey({ headers }: IncomingMessage): Promise<boolean> {
  const token = /^bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1] ?? '';
  return isOperatorKey(token, await operatorKey(process.env));
}
