/** The package as npm would publish it: what is in it, and that it works with nothing but its own dependencies. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { childEnv } from '../support/child.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { root } from './page.ts';

const run = promisify(execFile);

describe('npm pack', () => {
  it('makes a package that works in an empty folder', async () => {
    const folder = tempFolder({ 'package.json': '{ "private": true, "type": "module" }' });
    const env = childEnv({ HOME: folder, npm_config_update_notifier: 'false' });
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root, env });
    const [packed] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[];
    const files = packed!.files.map((file) => file.path);
    const wanted = [
      'bin/toolgate.mjs',
      'dist/cli/main.js',
      'dist/index.js',
      'dist/index.d.ts',
      'package.json',
      'python/start.py',
    ];
    expect(files).toEqual(expect.arrayContaining([...wanted, 'README.md', 'CHANGELOG.md', 'LICENSE']));
    const others = files.filter(
      (path) =>
        !/^(bin|dist)\/|^python\/.*\.py$|^rules\/.*\.toml$|^(package\.json|README\.md|CHANGELOG\.md|LICENSE)$/.test(
          path,
        ),
    );
    expect(others).toEqual([]);
    expect(files.filter((path) => path.includes('.test.'))).toEqual([]);

    // What `npm install` of the file does, without asking a registry for what is here already.
    const modules = join(folder, 'node_modules');
    mkdirSync(join(modules, '.bin'), { recursive: true });
    await run('tar', ['-xzf', join(folder, packed!.filename), '-C', folder]);
    renameSync(join(folder, 'package'), join(modules, 'toolgate'));
    const manifest = JSON.parse(readFileSync(join(modules, 'toolgate', 'package.json'), 'utf8')) as {
      bin: { toolgate: string };
      dependencies: Record<string, string>;
    };
    for (const name of Object.keys(manifest.dependencies))
      cpSync(join(root, 'node_modules', name), join(modules, name), { recursive: true });
    const bin = join(modules, '.bin', 'toolgate');
    symlinkSync(join(modules, 'toolgate', manifest.bin.toolgate), bin);

    // A server that answers over stdio, and a configuration in each language: every dependency gets loaded.
    writeFiles(folder, {
      'tools.toml': serversToml({ basic: server('basic') }),
      'gateway.yaml': 'servers: {}\n',
      'gateway.json': '{ "servers": { "gone": { "url": "http://127.0.0.1:9/mcp" } } }',
      'use.js': `import { VERSION } from 'toolgate'; console.log(VERSION);`,
    });
    const toolgate = (...args: string[]) => run(bin, args, { cwd: folder, env });
    expect((await toolgate('doctor')).stdout).toContain('basic: up');
    expect((await toolgate('list', 'servers', '--config', 'gateway.yaml')).stdout).toContain('No servers');
    expect((await toolgate('list', 'servers', '--config', 'gateway.json')).stdout).toContain('refused the connection');
    expect((await run(process.execPath, ['use.js'], { cwd: folder, env })).stdout).toBe('0.1.0\n');
  });
});
