/** The packages for Debian and Homebrew. */
import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { root } from '../support/docs-page.ts';
import { isMissing } from '../support/needs.ts';
import { tempFolder } from '../support/temp.ts';

const run = promisify(execFile);

describe.skipIf(isMissing('dpkg'))('the Debian package', () => {
  it('is installed, works, and is removed without a trace', async () => {
    const file = join(tempFolder(), 'toolgate.deb');
    await run(process.execPath, [join(root, 'deploy/debian/build.mjs'), file], { cwd: root });
    const { stdout: info } = await run('dpkg-deb', ['--info', file]);
    expect(info).toMatch(/Package: toolgate\n/);
    expect(info).toMatch(/Depends: nodejs \(>= 20\.19\)/);
    const target = tempFolder();
    const admin = join(target, 'var/lib/dpkg');
    for (const folder of ['info', 'updates']) mkdirSync(join(admin, folder), { recursive: true });
    for (const name of ['status', 'available']) writeFileSync(join(admin, name), '');
    // Node is not in this root, and the test may not run as root.
    const dpkg = (...args: string[]) =>
      run('dpkg', [`--root=${target}`, '--force-depends', '--force-not-root', '--force-script-chrootless', ...args]);
    await dpkg('--install', file);
    const program = join(target, 'usr/bin/toolgate');
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    const env = { HOME: tempFolder(), PATH: process.env.PATH!, TOOLGATE_TRUST: '1' };
    expect((await run(program, ['--version'], { env })).stdout).toBe(`${version}\n`);
    // A tool in a file needs the packages that were installed with it.
    const cwd = tempFolder({
      'tools.toml': 'controls = []\n',
      '.toolgate/tools/mine/index.ts':
        "export const hello = { description: 'x', inputSchema: {}, execute: (): string => 'hello' };\n",
    });
    expect((await run(program, ['call', 'mine_hello'], { cwd, env })).stdout).toBe('hello\n');
    for (const path of [
      'usr/share/man/man1/toolgate.1.gz',
      'usr/share/doc/toolgate/copyright',
      'usr/share/bash-completion/completions/toolgate',
      'usr/share/zsh/vendor-completions/_toolgate',
      'usr/share/fish/vendor_completions.d/toolgate.fish',
    ])
      expect(existsSync(join(target, path)), path).toBe(true);
    await dpkg('--remove', 'toolgate');
    const left = readdirSync(target, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('toolgate'));
    expect(left.filter((name) => !name.startsWith('var/'))).toEqual([]);
  });
});

describe('the Homebrew formula', () => {
  it('names the package that it was made for', async () => {
    const folder = tempFolder({ 'toolgate.tgz': 'x' });
    const make = (...args: string[]) => run(process.execPath, [join(root, 'deploy/homebrew/formula.mjs'), ...args]);
    const { stdout } = await make(join(folder, 'toolgate.tgz'), 'https://example.org/toolgate-0.1.0.tgz');
    expect(stdout).toContain(`sha256 "${createHash('sha256').update('x').digest('hex')}"`);
    expect(stdout).toContain('url "https://example.org/toolgate-0.1.0.tgz"');
    expect(stdout).toContain('license "Apache-2.0"');
    await expect(make(join(folder, 'toolgate.tgz'), 'https://x"; system("evil")')).rejects.toThrow('Usage');
  });

  it.skipIf(isMissing('ruby'))('is Ruby', async () => {
    const folder = tempFolder({ 'toolgate.tgz': 'x' });
    const args = [join(folder, 'toolgate.tgz'), 'https://example.org/toolgate-0.1.0.tgz'];
    const { stdout } = await run(process.execPath, [join(root, 'deploy/homebrew/formula.mjs'), ...args]);
    const checked = spawnSync('ruby', ['-wc'], { input: stdout, encoding: 'utf8' });
    expect([checked.stdout, checked.stderr]).toEqual(['Syntax OK\n', '']);
  });
});
