/** Opens an address in the browser of this user. */
import { spawn } from 'node:child_process';
import type { CommandIo } from './command-io.ts';
import { note } from './terminal.ts';

/** False if there is no way to open one. */
export function openBrowser(address: string, io: CommandIo): boolean {
  const { platform } = process;
  const program =
    io.env.BROWSER || (platform === 'darwin' ? 'open' : platform === 'win32' ? 'explorer.exe' : 'xdg-open');
  const hasScreen = platform !== 'linux' || io.env.BROWSER || io.env.DISPLAY || io.env.WAYLAND_DISPLAY;
  if (!hasScreen) return false;
  // Never by a shell: the address may come from the internet.
  const child = spawn(program, [address], { stdio: 'ignore', detached: true, env: { ...io.env } });
  child.on('error', () => note('No browser could be started. Open the address yourself.', io));
  child.unref();
  return true;
}
