/** How programs that go on are ended. Apart, because what waits for signals need not load a gateway. */

export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      resolve();
      // Whoever asks twice does not want to wait.
      process.once('SIGINT', () => process.exit(130));
      process.once('SIGTERM', () => process.exit(143));
    };
    process.once('SIGINT', stop);
    process.once('SIGTERM', stop);
  });
}
