/** The key that a person enters: from the form of the plain page, or as JSON. */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../base/errors.ts';
import { toObject } from '../base/objects.ts';
import { readBytes } from '../doors/http/wire/body.ts';
import { requireJson } from '../doors/http/wire/content-types.ts';

const MOST_BYTES = 4_096;

export async function readKey(request: IncomingMessage): Promise<{ readonly key: string; readonly isForm: boolean }> {
  const isForm = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true;
  // A form of another site could only enter keys that it knows. It must not even do that.
  const { origin, host } = request.headers;
  const isForeign =
    origin !== undefined && origin !== 'null' && (!URL.canParse(origin) || new URL(origin).host !== host);
  if (isForm && isForeign)
    throw new GatewayError('forbidden', 'A page of another site sent this form.', { rule: 'page session' });
  // A page may send other types without being asked whether it may.
  if (!isForm) requireJson(request.headers);
  const text = (await readBytes(request, MOST_BYTES)).toString();
  const key = isForm ? new URLSearchParams(text).get('key') : keyIn(text);
  if (typeof key !== 'string' || key.trim() === '')
    throw new GatewayError('params_invalid', 'Send {"key": "…"}: the operator key, or an admin token.');
  return { key: key.trim(), isForm };
}

function keyIn(text: string): unknown {
  try {
    return toObject(JSON.parse(text)).key;
  } catch {
    return null;
  }
}
