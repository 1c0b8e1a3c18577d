/** Questions that servers ask clients during a call. */
import { expect } from 'vitest';
import { within } from '../../support/child.ts';
import { waitFor } from '../../support/processes.ts';
import { type Asked, type MatrixClient, ROOTS } from '../clients.ts';
import { OWN } from '../servers.ts';
import { callJson } from './calls.ts';

const form = (message: string) => ({
  method: 'elicitation/create',
  params: {
    message,
    requestedSchema: { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] },
  },
});
const formAnswer = (message: string) => ({ action: 'accept', content: { word: `re ${message}` } });
const sampling = {
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: 'Say a word.' } }], maxTokens: 9 },
};
const samplingAnswer = { model: 'm', role: 'assistant', content: { type: 'text', text: 'a word' } };

/** The answers that the tool reports, and the questions that the client received. */
async function interview(subject: MatrixClient, tool: string): Promise<{ got: unknown; asked: readonly Asked[] }> {
  const from = subject.asked.length;
  const got = await callJson(subject, tool);
  return { got, asked: subject.asked.slice(from) };
}

export async function elicitForm(subject: MatrixClient): Promise<void> {
  const { got, asked } = await interview(subject, 'ask_form');
  expect(asked).toMatchObject([form('Which word?')]);
  expect(got).toEqual({ form: formAnswer('Which word?') });
}

export async function elicitUrl(subject: MatrixClient): Promise<void> {
  const { got, asked } = await interview(subject, 'ask_url');
  const params = { mode: 'url', message: 'Sign in, please.', url: 'https://example.com/sign-in' };
  expect(asked).toMatchObject([{ method: 'elicitation/create', params }]);
  // Only the earlier revisions identify such questions by an id.
  expect(typeof asked[0]!.params.elicitationId).toBe(subject.side.era === 'legacy' ? 'string' : 'undefined');
  expect(got).toEqual({ url: { action: 'accept' } });
}

export async function elicitDone(subject: MatrixClient): Promise<void> {
  const { asked } = await interview(subject, 'ask_url');
  const done = await waitFor(() =>
    subject.notifications.find(
      ({ method, params }) =>
        method === 'notifications/elicitation/complete' && params?.elicitationId === asked[0]!.params.elicitationId,
    ),
  );
  expect(done.params).toEqual({ elicitationId: expect.any(String) });
}

export async function sample(subject: MatrixClient): Promise<void> {
  const { got, asked } = await interview(subject, 'ask_model');
  expect(asked).toMatchObject([sampling]);
  expect(got).toEqual({ model: samplingAnswer });
}

export async function roots(subject: MatrixClient): Promise<void> {
  const { content } = await subject.call('ask_roots', {}, { namespace: OWN });
  expect(JSON.parse(content[0]!.text)).toEqual({ roots: { roots: ROOTS } });
}

const label = ({ params }: Asked) => String(params.message ?? '');

export async function several(subject: MatrixClient): Promise<void> {
  const { got, asked } = await interview(subject, 'ask_much');
  // Questions that are asked at once may arrive in any order.
  const inOrder = [...asked].sort((one, two) => label(one).localeCompare(label(two)));
  expect(inOrder).toMatchObject([sampling, form('One?'), form('Two?')]);
  expect(got).toEqual({ one: formAnswer('One?'), two: formAnswer('Two?'), model: samplingAnswer });
}

/** A client that cannot be asked gets an error quickly, and can go on. */
export async function unable(subject: MatrixClient): Promise<void> {
  const other = await subject.another({});
  expect(await callJson(other, 'echo', { there: 'at all' })).toEqual({ there: 'at all' });
  const outcome = other.call('ask_form').then(
    ({ content, isError }) => ({ failed: isError, text: content[0]?.text }),
    (error: Error) => ({ failed: true, text: error.message }),
  );
  expect(await within(10_000, outcome)).toEqual({ failed: true, text: expect.stringContaining('elicitation') });
  expect(await callJson(other, 'echo', { still: 'there' })).toEqual({ still: 'there' });
}
