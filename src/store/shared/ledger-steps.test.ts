/** How steps of calls travel to an engine. */
import { expect, it } from 'vitest';
import { answerIn } from './answers.ts';
import { createLedgerSteps } from './ledger-steps.ts';

const call = (stream: string) => ({ session: 's', stream });
const KEEP = 1_000;
const seal = (plain: Buffer, place: string) => Buffer.from(`${place}|${plain}`);

function watched(reply: (line: string) => string = () => 'done ') {
  const sent: { readonly lines: readonly string[]; readonly bytes: readonly string[] }[] = [];
  let isDown = false;
  const steps = createLedgerSteps(async (text, bytes) => {
    const lines = text.split('\n');
    sent.push({ lines, bytes: bytes.map(String) });
    if (isDown) throw new Error('away');
    return lines.map(reply).join('\n');
  });
  const answer = (stream: string, message: string) =>
    steps.answerLate(call(stream), 'me', 1, { head: '', body: Buffer.from(message), tail: '' }, KEEP, seal);
  return { sent, steps, answer, isDown: (value: boolean) => (isDown = value) };
}

it('answers that can wait are sealed together, and each counts for its own call', async () => {
  const { sent, answer } = watched((line) => (line.includes(' b ') ? 'lost' : 'done other'));
  const replies = await Promise.all([answer('a', 'first'), answer('b', ''), answer('c', 'x\n\ny')]);
  expect(replies.map(({ state }) => state)).toEqual(['done', 'lost', 'done']);
  expect(replies[0]).toEqual({ state: 'done', reader: 'other' });
  expect(sent).toHaveLength(1);
  const { lines, bytes } = sent[0]!;
  expect(lines).toEqual([
    'pb me-1 1000',
    'e- me s a 1 1 1000 me-1',
    'e- me s b 1 1 1000 me-1',
    'e- me s c 1 1 1000 me-1',
  ]);
  expect(bytes).toHaveLength(1);
  const plain = Buffer.from(bytes[0]!.replace('answers:me-1|', ''));
  expect(['a', 'b', 'c', 'd'].map((stream) => answerIn(plain, call(stream))?.toString() ?? null)).toEqual([
    'first',
    '',
    'x\n\ny',
    null,
  ]);
  expect(answerIn(plain, { session: 'another', stream: 'a' })).toBeNull();
});

it('steps that somebody waits for do not wait for answers that can', async () => {
  const { sent, steps, answer } = watched((line) => (line.startsWith('a') ? 'fresh' : 'done '));
  const late = answer('a', 'answer');
  const admitted = steps.admit({ ...call('b'), owner: 'me', digest: 'd', bytes: Buffer.from('q') });
  expect(await admitted).toBe('fresh');
  expect(sent.map(({ lines }) => lines)).toEqual([['ab me s b d']]);
  expect(await late).toEqual({ state: 'done', reader: null });
  expect(sent).toHaveLength(2);
});

it('many answers, or large ones, do not wait', async () => {
  const { sent, answer } = watched();
  const many = Array.from({ length: 64 }, (_, i) => answer(`n${i}`, 'm'));
  expect(sent).toHaveLength(1);
  const large = answer('large', 'x'.repeat(1_000_000));
  expect(sent).toHaveLength(2);
  await Promise.all([...many, large]);
});

it('answers that the engine does not get are all told, and can be sent again', async () => {
  const { sent, answer, isDown } = watched();
  isDown(true);
  const failed = await Promise.allSettled([answer('a', '1'), answer('b', '2')]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  isDown(false);
  expect(await answer('a', '1')).toMatchObject({ state: 'done' });
  expect(sent.at(-1)!.lines[0]).toBe('pb me-2 1000');
});
