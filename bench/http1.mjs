// Reads HTTP/1.1 messages from a byte stream: just enough for the load generator and the HTTP upstream. node:http costs as much
// per message as the compared gateways, so on two cores the bench would measure the client and not the gateway.

const HEAD_END = Buffer.from('\r\n\r\n');
const LINE_END = Buffer.from('\r\n');
const EMPTY = Buffer.alloc(0);
const LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding: *chunked/i;

/** The value of a header in a head from `createReader`. */
export function headerOf(head, name) {
  return new RegExp(`\\r\\n${name}: *([^\\r]*)`, 'i').exec(head)?.[1];
}

/** Returns `push(chunk)`, which calls `onMessage(head, body)` for each complete message. */
export function createReader(onMessage) {
  let unread = EMPTY;
  let head = null;
  let chunked = false;
  let left = 0; // bytes still missing from the body, or from the current chunk with its line end
  let parts = [];

  const finish = () => {
    const [doneHead, body] = [head, parts.length === 1 ? parts[0] : Buffer.concat(parts)];
    head = null;
    parts = [];
    onMessage(doneHead, body);
  };

  return function push(chunk) {
    let buffer = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
    unread = EMPTY;
    while (buffer.length > 0) {
      if (head === null) {
        const end = buffer.indexOf(HEAD_END);
        if (end < 0) break;
        head = buffer.latin1Slice(0, end);
        buffer = buffer.subarray(end + 4);
        chunked = CHUNKED.test(head);
        left = chunked ? 0 : Number(LENGTH.exec(head)?.[1] ?? 0);
        if (!chunked && left === 0) finish();
      } else if (left > 0) {
        const part = buffer.subarray(0, left);
        left -= part.length;
        buffer = buffer.subarray(part.length);
        parts.push(part);
        if (left > 0) continue;
        if (!chunked) finish();
        else dropLineEnd(parts);
      } else {
        const end = buffer.indexOf(LINE_END);
        // The last chunk is empty and, without trailers, followed by an empty line.
        if (end < 0) break;
        const size = Number.parseInt(buffer.latin1Slice(0, end), 16);
        if (size === 0) {
          if (buffer.length < end + 4) break;
          buffer = buffer.subarray(end + 4);
          finish();
        } else {
          left = size + 2;
          buffer = buffer.subarray(end + 2);
        }
      }
    }
    unread = buffer;
  };
}

/** A chunk is collected with its line end, which may arrive in two parts. */
function dropLineEnd(parts) {
  let extra = 2;
  while (extra > 0) {
    const last = parts.pop();
    if (last.length > extra) parts.push(last.subarray(0, last.length - extra));
    extra -= Math.min(extra, last.length);
  }
}
