// Sends the same request on many connections at once and holds them open, in a process of its own: what it costs to keep
// them is not to be felt by whoever measures.
//   node hanging.mjs PORT COUNT REQUEST   REQUEST in base64
// Prints `sent` when all are out, and `answered` for each that gets an answer. Ends with its standard input.
import { once } from 'node:events';
import { connect } from 'node:net';

const [port, count, request] = process.argv.slice(2);
const bytes = Buffer.from(request, 'base64');
const sockets = Array.from({ length: Number(count) }, () => connect(Number(port), '127.0.0.1'));
for (const socket of sockets) socket.once('data', () => console.log('answered'));
await Promise.all(sockets.map((socket) => once(socket, 'connect')));
for (const socket of sockets) socket.write(bytes);
console.log('sent');
process.stdin.resume().on('end', () => {
  for (const socket of sockets) socket.destroy();
});
