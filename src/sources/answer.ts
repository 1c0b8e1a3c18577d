/** Answers to what servers ask of us. Questions meant for a person or a model are not passed on, and we declare that we cannot. */

import { toBytes } from '../protocol/json.ts';
import { idText, type Message } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import { errorReply, type Reply, resultReply } from '../protocol/rpc.ts';

export function answerServer(message: Message): Buffer {
  const { head, body, tail } = reply(message);
  return Buffer.concat([Buffer.from(head), join(body), Buffer.from(tail, 'latin1')]);
}

function reply(message: Message): Reply {
  const id = idText(message);
  switch (message.method) {
    case 'ping':
      return resultReply(id, toBytes({}));
    case 'roots/list':
      return resultReply(id, toBytes({ roots: [] }));
    default:
      return errorReply(id, toBytes({ code: -32601, message: `Toolgate does not answer ${message.method}` }));
  }
}
