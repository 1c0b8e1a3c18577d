/** An additional process, for calls that may ask something, is told the log level like the first one. */
import { expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { ABLE, answerWith } from '../support/questions.ts';
import { server } from '../support/server.ts';

it('delivers debug messages of a call while another call of the client waits for an answer', async () => {
  const config = `controls = []\n\n[[servers]]\nnamespace = "w"\ncommand = ${JSON.stringify(server('whole-legacy'))}\n`;
  const gateway = await startHttp({ config });
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const connection = await gateway.connect({ capabilities: ABLE });
  const { client, questions } = answerWith(connection.client, async () => {
    await answered;
    return { action: 'accept', content: { word: 'late' } };
  });
  await client.setLoggingLevel('debug');
  const waiting = client.callTool({ name: 'w_ask_form', arguments: {} });
  await waitFor(() => questions.length === 1);
  await client.callTool({ name: 'w_speak', arguments: {} });
  const levels = connection.notifications
    .filter(({ method }) => method === 'notifications/message')
    .map(({ params }) => params?.level);
  expect(levels).toEqual(['debug', 'info', 'error']);
  answer();
  await waiting;
});
