// Sends the same request on many connections at once and holds them open. A separate process, so that the cost of holding
// them does not affect the measurement.
//   node hanging.mjs PORT COUNT REQUEST   REQUEST in base64
// Prints `sent` when all are sent, and `answered` for each answer. Ends with its standard input.
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
