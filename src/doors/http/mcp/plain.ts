/** The reply to a client that reads plain JSON only, as 2025-03-26 allows: one answer, or all answers of a batch in an array. */
import type { ServerResponse } from 'node:http';
import { join } from '../../../protocol/parts.ts';
import type { Reply } from '../../../protocol/rpc.ts';
import type { Exchange } from '../../answer.ts';
import type { Backpressure } from './backpressure.ts';
import { sendReply } from './exchange.ts';
import type { Session } from './sessions.ts';

export function createPlainExchange(
  response: ServerResponse,
  headers: readonly string[],
  unread: Backpressure,
  session: Session,
  batch: number | null,
): Exchange {
  const answers: Reply[] = [];
  let expected = batch ?? 1;
  const end = () => {
    if (--expected > 0) return;
    if (answers.length === 0) response.writeHead(202, [...headers, 'content-length', '0']).end();
    else sendReply(response, 200, batch === null ? answers[0]! : inArray(answers), headers, unread);
  };
  return {
    // There is no other way to say it than on the stream that the client may have open.
    send: (message) => session.say(message),
    finish(answer) {
      answers.push(answer);
      end();
    },
    abandon: end,
    keepAlive() {},
    isFull: false,
    get isGone() {
      return response.destroyed;
    },
    whenDrained: (goOn) => goOn(),
  };
}

function inArray(answers: readonly Reply[]): Reply {
  const texts = answers.map(({ head, body, tail }) => head + join(body).toString('latin1') + tail);
  return { head: '[', body: Buffer.from(texts.join(','), 'latin1'), tail: ']' };
}
