// Starts a server of the bench on a free port, which it prints on stdout. It ends when its stdin closes, so that it does not
// outlive a killed harness.

export function announce(server) {
  server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`));
  process.stdin.resume();
  process.stdin.on('end', () => process.exit(0));
}
