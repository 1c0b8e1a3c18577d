/** Packages that are really installed through the manager: from the registry for Python, and from one in this process for npm. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { installer } from '../support/installer.ts';
import { type ManagedDock, startManaged } from '../support/manager.ts';
import { startRegistry } from '../support/npm-registry.ts';
import { noPython } from '../support/python.ts';

let dock: ManagedDock;
const TOOL = `from importlib.metadata import version
import iniconfig
from fastmcp.tools import tool

@tool
def which() -> str:
    """The version of the package."""
    return version("iniconfig")
`;

describe.skipIf(noPython)('packages of Python', () => {
  beforeAll(async () => {
    dock = await startManaged({ python: true, env: installer, files: { 'py/which.py': TOOL } });
  }, 180_000);

  it('are added with add_requirement, and the tools of the namespace use them', async () => {
    expect(await dock.call('add_requirement', { namespace: 'py', package: 'iniconfig==2.0.0' })).toEqual({
      added: true,
      package: 'iniconfig==2.0.0',
      namespace: 'py',
    });
    expect(await dock.call('test_tool', { namespace: 'py', tool_name: 'which', input: {} })).toMatchObject({
      success: true,
      result: '2.0.0',
    });
    expect(await dock.call('list_requirements', { namespace: 'py' })).toEqual({
      namespace: 'py',
      packages: ['iniconfig==2.0.0'],
    });
  }, 180_000);

  it('that do not exist, or not in that version, leave everything as it was', async () => {
    const file = join(dock.tools, 'py/requirements.txt');
    const before = readFileSync(file, 'utf8');
    for (const wanted of ['iniconfig==99.9', 'no-such-package-of-toolgate-tests']) {
      const failed = await dock.call('add_requirement', { namespace: 'py', package: wanted });
      expect(failed).toMatchObject({ added: false, package: wanted, error: 'pip install failed' });
      expect((failed as { details: string }).details).toMatch(
        /No matching distribution|Could not find|no version|not found/i,
      );
      expect(readFileSync(file, 'utf8')).toBe(before);
    }
    expect(await dock.call('test_tool', { namespace: 'py', tool_name: 'which', input: {} })).toHaveProperty(
      'result',
      '2.0.0',
    );
  }, 180_000);

  it('are installed with install_requirements after the file was edited, or the mistake is told', async () => {
    writeFileSync(join(dock.tools, 'py/requirements.txt'), 'iniconfig==2.1.0\n');
    expect(await dock.call('install_requirements', { namespace: 'py' })).toEqual({
      installed: true,
      namespace: 'py',
      packages: ['iniconfig==2.1.0'],
    });
    expect(await dock.call('test_tool', { namespace: 'py', tool_name: 'which', input: {} })).toHaveProperty(
      'result',
      '2.1.0',
    );
    writeFileSync(join(dock.tools, 'py/requirements.txt'), 'iniconfig==97.0\n');
    expect(await dock.call('install_requirements', { namespace: 'py' })).toMatchObject({
      installed: false,
      error: 'pip install failed',
    });
    expect((await dock.fails('install_requirements', { namespace: 'nope' })).message).toContain('no namespace');
  }, 180_000);

  it("are installed for the manager's own use, in an environment of their own", async () => {
    expect(await dock.call('install_pip_packages', { packages: ['iniconfig'] })).toEqual({
      installed: true,
      packages: ['iniconfig'],
    });
    const own = join(dock.cwd, '.toolgate/manager/requirements.txt');
    expect(readFileSync(own, 'utf8')).toBe('iniconfig\n');
    expect(readdirSync(join(dock.cwd, '.toolgate/venvs'))).toContain('_manager');
    expect(await dock.call('install_pip_packages', { packages: ['no-such-package-of-toolgate-tests'] })).toMatchObject({
      installed: false,
      error: 'pip install failed',
    });
    expect(readFileSync(own, 'utf8')).toBe('iniconfig\n');
  }, 180_000);
});

it('packages of npm are installed without their scripts, and a failure leaves everything as it was', async () => {
  const scripts = { postinstall: 'touch ran' };
  const registry = await startRegistry({ name: 'tiny', version: '1.0.0', bins: ['tiny'], scripts });
  const { HOME, ...env } = registry.env();
  const here = await startManaged({
    env: { ...env, HOME: HOME! },
    files: {
      'ts/one.ts': 'export const one = { description: "One.", inputSchema: { type: "object" }, execute: () => 1 };\n',
    },
  });
  expect(await here.call('add_requirement', { namespace: 'ts', package: 'tiny@1.0.0' })).toEqual({
    added: true,
    package: 'tiny@1.0.0',
    namespace: 'ts',
  });
  expect(registry.requests).toContain('tiny');
  const file = join(here.tools, 'ts/package.json');
  const before = readFileSync(file, 'utf8');
  expect(JSON.parse(before)).toMatchObject({ dependencies: { tiny: '1.0.0' } });
  const everything = execFileSync('find', [here.cwd, '-name', 'ran'], { encoding: 'utf8' });
  expect(everything).toBe('');
  const installed = execFileSync('find', [here.cwd, '-name', 'tiny.mjs'], { encoding: 'utf8' });
  expect(installed).not.toBe('');
  expect(await here.call('add_requirement', { namespace: 'ts', package: 'tiny@9' })).toMatchObject({
    added: false,
    error: 'npm install failed',
  });
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(existsSync(join(here.tools, 'ts/one.ts'))).toBe(true);
  expect(await here.call('install_requirements', { namespace: 'ts' })).toMatchObject({ installed: true });
}, 180_000);
