/** `toolgate secrets` as people use it, in a terminal and in scripts. */
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runCli, startCli } from '../support/cli.ts';
import { KEY, openStore } from '../support/killing.ts';
import { noPython } from '../support/python.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { onTerminal } from '../support/terminal.ts';
import { onePart, some } from '../support/wide.ts';

const config = `[[servers]]
namespace = "up"
command = ${JSON.stringify(server('basic'))}
env = { TOKEN = "\${secret:UP_TOKEN}", OTHER = "\${secret:OTHER}" }
`;
const VALUE = 'hunter2/+ "quoted"';

function start(files: Record<string, string> = {}) {
  const cwd = tempFolder({ 'tools.toml': config, ...files });
  const env: Record<string, string> = { SECRETS_KEY: KEY };
  const store = openStore(join(cwd, '.toolgate'));
  return { cwd, env, store, run: (...args: string[]) => runCli(['secrets', ...args], { cwd, env }) };
}

/** Runs the command with a text on its standard input. */
async function pipe(cwd: string, env: Record<string, string>, input: string, ...args: string[]) {
  const child = startCli(['secrets', ...args], { cwd, env });
  child.stdin.end(input);
  const { code } = await child.exited;
  return { code, output: child.stdout() + child.stderr() };
}

describe.skipIf(noPython !== undefined)('toolgate secrets on a terminal', () => {
  it('asks for a value twice and never shows it', async () => {
    const { cwd, env, store } = start();
    const typed = [
      ['Value of UP_TOKEN:', `${VALUE}x\u007f\r`],
      ['The same again:', `wrong\u0015${VALUE}\r`],
    ] as const;
    const { screen, code } = await onTerminal(['secrets', 'set', 'UP_TOKEN'], typed, { cwd, env });
    expect({ code, screen }).toMatchObject({ code: 0, screen: expect.stringContaining('Set UP_TOKEN, global.') });
    expect(screen).not.toMatch(/hunter|quoted|wrong|\*\*/);
    expect((await store.read()).global.get('UP_TOKEN')).toBe(VALUE);

    const differing = [
      ['Value', 'one value\r'],
      ['again', 'another value\r'],
    ] as const;
    const different = await onTerminal(['secrets', 'set', 'UP_TOKEN'], differing, { cwd, env });
    expect(different).toMatchObject({ code: 2, screen: expect.stringContaining('The two values differ') });
    expect((await store.read()).global.get('UP_TOKEN')).toBe(VALUE);
  });

  const ways: [string, Parameters<typeof onTerminal>[1][number][1], number][] = [
    ['Ctrl-C', 'half of it\u0003', 2],
    ['SIGINT', { kill: 'SIGINT' }, 130],
    ['Ctrl-D', '\u0004', 2],
    ['SIGTERM', { kill: 'SIGTERM' }, 143],
    ['SIGHUP', { kill: 'SIGHUP' }, 129],
  ];
  it.each(onePart(ways.length, ways))(
    '%s leaves a prompt, changes nothing and leaves the terminal usable',
    async (_, typed, code) => {
      const { cwd, env, store } = start();
      await store.set('UP_TOKEN', null, VALUE);
      const hidden = await onTerminal(['secrets', 'set', 'UP_TOKEN'], [['Value of UP_TOKEN:', typed]], { cwd, env });
      expect(hidden).toMatchObject({ code, isSane: true });
      const removing = await onTerminal(['secrets', 'remove', 'UP_TOKEN'], [['Remove UP_TOKEN', typed]], { cwd, env });
      expect(removing).toMatchObject({ code, isSane: true });
      expect(hidden.screen).not.toContain('half');
      for (const { shown } of [hidden, removing]) {
        expect(shown).not.toContain('    at ');
        if (code === 2) expect(shown).toContain('toolgate: Cancelled. Nothing was changed.');
      }
      expect((await store.read()).global.get('UP_TOKEN')).toBe(VALUE);
    },
  );

  it('accepts yes or no as confirmation, with no as the default', async () => {
    const { cwd, env, store } = start();
    await store.set('UP_TOKEN', null, VALUE);
    const remove = (answer: string) => onTerminal(['secrets', 'remove', 'UP_TOKEN'], [['(y/N)', answer]], { cwd, env });
    for (const answer of some(['\r', 'n\r', 'x\r'], ['\r']))
      expect(await remove(answer)).toMatchObject({ code: 1, shown: expect.stringContaining('Nothing was removed.') });
    expect((await store.read()).global.get('UP_TOKEN')).toBe(VALUE);
    expect(await remove('y\r')).toMatchObject({ code: 0, shown: expect.stringContaining('Removed UP_TOKEN, global.') });
    expect((await store.read()).global.size).toBe(0);
  });

  it('refuses a pasted value of several lines instead of using the first line', async () => {
    const { cwd, env, store } = start();
    const pasted = await onTerminal(
      ['secrets', 'set', 'UP_TOKEN'],
      [['Value of UP_TOKEN:', '-----BEGIN KEY-----\nhunter2\n-----END KEY-----\r']],
      { cwd, env },
    );
    expect(pasted).toMatchObject({ code: 2, isSane: true, shown: expect.stringContaining('Use --stdin') });
    expect(pasted.screen).not.toMatch(/hunter|BEGIN/);
    expect(existsSync(store.file)).toBe(false);
  });

  const editor = `"${process.execPath}" '${fileURLToPath(new URL('editor.mjs', import.meta.url))}' --wait`;

  it('edit opens all secrets in a private file that is deleted afterwards', async () => {
    const { cwd, env, store } = start();
    await store.set('UP_TOKEN', null, VALUE);
    await store.prepare('OTHER', 'up');
    const notes = join(cwd, 'notes.json');
    const edit = (change: [string, string], steps: Parameters<typeof onTerminal>[1] = []) =>
      onTerminal(['secrets', 'edit'], steps, {
        cwd,
        env: { ...env, EDITOR: editor, NOTES: notes, EDIT: JSON.stringify(change) },
      });
    const { screen, code } = await edit(['"OTHER":', '"OTHER": "other value"\n    NEW: "new value"']);
    expect({ code, screen }).toMatchObject({ code: 0, screen: expect.stringContaining('2 set.') });
    expect(screen).not.toMatch(/hunter|value/);
    const seen = JSON.parse(readFileSync(notes, 'utf8')) as Record<string, unknown> & { file: string; text: string };
    expect(seen).toMatchObject({ modes: ['600', '700'], files: ['secrets.yaml'], keys: [], args: ['--wait'] });
    expect(seen.text).toContain(JSON.stringify(VALUE));
    if (existsSync('/dev/shm')) expect(seen.file).toMatch(/^\/dev\/shm\//);
    expect(existsSync(dirname(seen.file))).toBe(false);
    expect(await store.read()).toMatchObject({
      global: new Map([['UP_TOKEN', VALUE]]),
      namespaces: new Map([['up', new Map(Object.entries({ OTHER: 'other value', NEW: 'new value' }).sort())]]),
    });

    const bad = await edit(['"UP_TOKEN": ', '"UP_TOKEN": 12 #'], [['Edit again?', 'n\r']]);
    expect(bad.screen).toContain('The value of UP_TOKEN in global is not a string.');
    expect(bad).toMatchObject({ code: 2, screen: expect.stringContaining('Nothing was changed.') });
    expect(bad.screen).not.toContain('hunter');
    expect((await store.read()).global.get('UP_TOKEN')).toBe(VALUE);
  });

  it('edit deletes the file even if the command is terminated', async () => {
    const { cwd, env, store } = start();
    await store.set('UP_TOKEN', null, VALUE);
    const notes = join(cwd, 'notes.json');
    const ended = await onTerminal(['secrets', 'edit'], [['editor is open', { kill: 'SIGTERM' }]], {
      cwd,
      env: { ...env, EDITOR: editor, NOTES: notes, EDIT: '["WAIT",""]' },
    });
    expect(ended.code).toBe(143);
    const { file } = JSON.parse(readFileSync(notes, 'utf8')) as { file: string };
    expect(existsSync(dirname(file))).toBe(false);
  });
});

describe('toolgate secrets without a terminal', () => {
  it('never prompts, and accepts no value as an argument', async () => {
    const { cwd, env, run, store } = start();
    const refused = await Promise.all([
      run('set', 'UP_TOKEN'),
      run('set', 'UP_TOKEN', VALUE),
      run('set', `UP_TOKEN=${VALUE}`),
      run('edit'),
      run('rotate'),
      run('remove', 'UP_TOKEN'),
      run('sett', 'UP_TOKEN'),
      run('set'),
      run('list', 'UP_TOKEN'),
    ]);
    const words = [
      'toolgate secrets set NAME --stdin < FILE',
      'takes one name and no value',
      'A secret is named like an environment variable',
      'needs a terminal',
      '--new-key-file FILE or --stdin',
      'Add --yes to do it.',
      'Did you mean "set"?',
      'needs the name of a secret',
      'takes no name',
    ];
    for (const [i, { code, stderr, stdout }] of refused.entries()) {
      expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(words[i]!) });
      expect(stderr).not.toContain('hunter');
    }
    expect(existsSync(store.file)).toBe(false);
    expect(await pipe(cwd, env, `${VALUE}\n`, 'set', '--key', 'UP_TOKEN', '--scope', 'global', '--stdin')).toEqual({
      code: 0,
      output: 'Set UP_TOKEN, global.\n',
    });
    const short = await pipe(cwd, env, 'abc', 'set', 'OTHER', '--namespace', 'up', '--stdin', '--json');
    expect(short.output).toContain('fewer than 6 characters');
    expect(short.output).toContain('"scope": "up"');
    expect((await store.read()).global.get('UP_TOKEN')).toBe(VALUE);
    // Stored despite the warning, in the scope of the namespace.
    expect((await store.read()).namespaces.get('up')?.get('OTHER')).toBe('abc');
  });

  it('lists set and missing secrets without a key and without showing a value', async () => {
    const { run, store, cwd } = start({
      '.toolgate/tools/gh/a.ts': 'export const a = { description: "a", execute: () => 1 };',
      '.toolgate/tools/gh/tooldock.yaml': 'secrets: [GITHUB_TOKEN]\nenv: { HEAD: "token ${secret:GH_HEAD}" }\n',
    });
    await store.set('UP_TOKEN', null, VALUE);
    await store.set('GITHUB_TOKEN', 'gh', VALUE);
    await store.prepare('GH_HEAD', null);
    const [list, own, json, check] = await Promise.all([
      runCli(['secrets'], { cwd }),
      run('list', '--namespace', 'gh'),
      run('list', '--json'),
      run('check', '--json'),
    ]);
    expect(list.stdout).toMatch(/^GH_HEAD +global {2}placeholder {2}\S+ \S+ UTC\nUP_TOKEN +global {2}set /);
    expect(own.stdout.trim().split('\n')).toHaveLength(1);
    expect(JSON.parse(json.stdout)).toHaveLength(3);
    expect(check.code).toBe(1);
    expect(JSON.parse(check.stdout)).toEqual([
      { server: 'up', namespace: 'up', satisfied: ['UP_TOKEN'], missing: ['OTHER'], placeholders: [] },
      { server: 'gh', namespace: 'gh', satisfied: ['GITHUB_TOKEN'], missing: [], placeholders: ['GH_HEAD'] },
    ]);
    expect(list.stdout + own.stdout + json.stdout + check.stdout).not.toContain('hunter');
    const removed = await run('remove', 'GITHUB_TOKEN', '--namespace', 'gh', '--yes');
    expect(removed).toMatchObject({ code: 0, stdout: 'Removed GITHUB_TOKEN, for the namespace "gh".\n' });
    expect((await run('remove', 'UP_TOKENS', '--yes')).stderr).toContain('Did you mean "UP_TOKEN"?');
    chmodSync(store.file, 0o644);
    const doctor = await runCli(['doctor'], { cwd, env: { SECRETS_KEY: KEY } });
    expect(doctor.stdout).toContain('secrets.enc can be read by others (mode 0644). Run: chmod 600');
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toContain('secrets: 1 set, encrypted with the key from SECRETS_KEY');
    expect(doctor.stdout).toContain('GH_HEAD has no value yet: toolgate secrets set GH_HEAD');
    expect(doctor.stdout).toContain('up: locked: waits for the secret OTHER: toolgate secrets set OTHER');
  });
});

describe('the encryption key of the secrets', () => {
  it('is generated, readable only by its owner, and can be rotated', async () => {
    const { cwd, run } = start();
    const env = { SECRETS_KEY_FILE: 'first.key' };
    expect((await run('keygen', '--out', 'first.key')).code).toBe(0);
    expect((await run('keygen', '--out', 'first.key')).stderr).toContain('is not overwritten');
    expect(statSync(join(cwd, 'first.key')).mode & 0o777).toBe(0o600);
    const { stdout: key } = await run('keygen');
    expect(Buffer.from(key.trim(), 'base64url')).toHaveLength(32);
    await pipe(cwd, env, VALUE, 'set', 'UP_TOKEN', '--stdin');
    writeFileSync(join(cwd, 'second.key'), key, { mode: 0o600 });
    const rotated = await runCli(['secrets', 'rotate', '--new-key-file', 'second.key'], { cwd, env });
    expect(rotated.stdout).toContain('encrypted with the new key');
    expect((await runCli(['secrets', 'list'], { cwd, env })).stderr).toContain('written with another key');
    expect((await pipe(cwd, { SECRETS_KEY_FILE: 'second.key' }, KEY, 'rotate', '--stdin')).code).toBe(0);
    expect((await openStore(join(cwd, '.toolgate')).read()).global.get('UP_TOKEN')).toBe(VALUE);
  });

  it('may be missing in development mode, with a warning every time', async () => {
    const { cwd } = start();
    const env = { ALLOW_INSECURE_SECRETS: '1' };
    const loud = 'anyone who can read secrets.enc can read all secrets';
    expect((await pipe(cwd, env, VALUE, 'set', 'UP_TOKEN', '--stdin')).output).toContain(loud);
    await pipe(cwd, env, VALUE, 'set', 'OTHER', '--stdin');
    const list = await runCli(['list'], { cwd, env });
    expect(list.stderr).toContain(loud);
    expect(list.stdout).toContain('up_echo');
    const [doctor, without] = await Promise.all([runCli(['doctor'], { cwd, env }), runCli(['doctor'], { cwd })]);
    expect(doctor.stdout).toContain(loud);
    expect(doctor.code).toBe(1);
    expect(without.stdout).toContain('There is no key for the secrets.');
    expect(without.code).toBe(2);
    expect(readdirSync(join(cwd, '.toolgate')).filter((name) => name.includes('tmp'))).toEqual([]);
  });

  it('is refused if it is too short, given twice or readable by others', async () => {
    const { cwd } = start({ 'open.key': `${KEY}\n` });
    const runs = await Promise.all(
      [
        { SECRETS_KEY: 'short' },
        { SECRETS_KEY: KEY, SECRETS_KEY_FILE: 'open.key' },
        { SECRETS_KEY_FILE: 'open.key' },
        { ALLOW_INSECURE_SECRETS: 'yes please' },
      ].map((env) => pipe(cwd, env as unknown as Record<string, string>, VALUE, 'set', 'UP_TOKEN', '--stdin')),
    );
    expect(runs.map(({ code }) => code)).toEqual([2, 2, 2, 2]);
    const words = ['fewer than 16 characters', 'are both set', 'can be read by others', 'is not 0 or 1'];
    for (const [i, { output }] of runs.entries()) expect(output).toContain(words[i]);
    for (const { output } of runs) expect(output).not.toMatch(/hunter|yes please/);
  });
});
