/** Answers to what servers ask of us. Questions meant for a person or a model are not passed on, and we declare that we cannot. */

import { toBytes } from '../protocol/json.ts';
import { idText, type Message } from '../protocol/message.ts';
import { errorMessage, resultMessage } from '../protocol/rpc.ts';

export function answerServer(message: Message): Buffer {
  const id = idText(message);
  switch (message.method) {
    case 'ping':
      return resultMessage(id, toBytes({}));
    case 'roots/list':
      return resultMessage(id, toBytes({ roots: [] }));
    default:
      return errorMessage(id, toBytes({ code: -32601, message: `Toolgate does not answer ${message.method}` }));
  }
}
