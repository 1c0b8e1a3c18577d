import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editText } from './edit.ts';
import type { Edit } from './raw-config.ts';

const set = (path: Edit['path'], value: unknown): Edit => ({ kind: 'set', path, value });
const append = (path: Edit['path'], value: unknown): Edit => ({ kind: 'append', path, value });
const remove = (...path: (string | number)[]): Edit => ({ kind: 'remove', path });

describe('TOML', () => {
  const edit = (text: string, ...edits: Edit[]) => editText(text, 'tools.toml', edits);

  it('a key of a table is added after the others, and a comment stays where it is', async () => {
    const text =
      '# head\n\n[[servers]] # one\nnamespace = "a"   # why\ncommand = "x"\n\n# about b\n[[servers]]\nnamespace = "b"\ncommand = "y"';
    expect(await edit(text, set(['servers', 0, 'enabled'], false))).toBe(
      text.replace('command = "x"\n', 'command = "x"\nenabled = false\n'),
    );
    expect(await edit(text, set(['servers', 1, 'enabled'], false))).toBe(`${text}\nenabled = false\n`);
    expect(await edit(text, set(['servers', 0, 'command'], 'z'))).toBe(text.replace('"x"', '"z"'));
  });

  it('a table is removed with its own comments and tables, and nothing else', async () => {
    const a = '# about a\n[servers.a] # one\ncommand = "x"\n# env = {}\n\n[servers.a.env]\nK = "v"\n\n';
    const rest = '# about b\n[servers.b]\ncommand = "y"\n';
    expect(
      await edit(`port = 1\n\n${a}${rest}`.replace('port = 1\n', 'start_wait = "1s"\n'), remove('servers', 'a')),
    ).toBe(`start_wait = "1s"\n\n${rest}`);
    expect(await edit(`${a}${rest}`, remove('servers', 'b'))).toBe(a.slice(0, -1));
  });

  it('a comment at the head of the file stays when the first table goes', async () => {
    expect(await edit('# all mine\n[[servers]]\ncommand = "x"\n', remove('servers', 0))).toBe('# all mine\n');
  });

  it.each([
    ['inline tables', 'servers = [ { command = "x" }, { command = "y" } ] # two\n'],
    ['lines of inline tables', 'servers = [\n  { command = "x" }, # one\n  { command = "y" }, # two\n]\n'],
    ['a map on one line', 'servers = { a = { command = "x" }, b = { command = "y" } }\n'],
    ['keys with dots', 'servers.a.command = "x" # one\nservers.b.command = "y"\n\n[http]\nport = 1\n'],
    ['keys with dots in a table', '[servers]\na.command = "x"\nb.command = "y" # two\n'],
    ['Windows lines', '[servers.a]\r\ncommand = "x"\r\n\r\n[servers.b]\r\ncommand = "y"\r\n'],
  ])('%s can be edited', async (_, text) => {
    const isList = text.startsWith('servers = [');
    const [a, b] = isList ? [0, 1] : ['a', 'b'];
    const disabled = await edit(text, set(['servers', b, 'enabled'], false));
    expect(disabled.replace(/,? ?(?:servers\.b\.|b\.)?enabled = false(?:\r?\n)?/, '')).toBe(text);
    await edit(text, remove('servers', a));
    await edit(text, remove('servers', b));
    await edit(text, isList ? append(['servers'], { command: 'z' }) : set(['servers', 'c'], { command: 'z' }));
    if (text.includes('\r')) expect(disabled).not.toMatch(/[^\r]\n/);
  });

  it('a list in a table is made, extended, and shortened', async () => {
    const text = 'start_wait = "1s"\n[http]\nport = 1\n';
    const one = await edit(text, append(['denied_tools', 'a b'], 'x'));
    expect(one).toBe(`${text}\n[denied_tools]\n"a b" = ["x"]\n`);
    const two = await edit(one, append(['denied_tools', 'a b'], 'y'), append(['denied_tools', 'c'], 'z'));
    expect(two).toBe(`${text}\n[denied_tools]\n"a b" = ["x", "y"]\nc = ["z"]\n`);
    expect(await edit(two, remove('denied_tools', 'c'), remove('denied_tools', 'a b', 1))).toBe(one);
    const lines = 'x = [\n  "a",\n  "b", # last\n]\n';
    expect(await edit(lines, append(['x'], 'c'))).toBe('x = [\n  "a",\n  "b",\n  "c", # last\n]\n');
  });

  it('a setting of the file comes before its tables', async () => {
    expect(await edit('# head\n\n# about a\n[a]\nx = 1\n', set(['lock'], 'off'))).toBe(
      '# head\n\nlock = "off"\n\n# about a\n[a]\nx = 1\n',
    );
  });
});

describe('YAML', () => {
  const edit = (text: string, ...edits: Edit[]) => editText(text, 'toolgate.yaml', edits);
  const text =
    '# head\nservers:\n    # about a\n    a:\n        command: "x"   # why\n    # about b\n    b: { command: y }\n\nhttp:\n    port: 1 # end\n';

  it('maps in lines keep their format', async () => {
    expect(await edit(text, set(['servers', 'a', 'enabled'], false))).toBe(
      text.replace('# why\n', '# why\n        enabled: false\n'),
    );
    expect(await edit(text, set(['servers', 'a', 'command'], 'z'))).toBe(text.replace('"x"', 'z'));
    expect(await edit(text, remove('servers', 'a'))).toBe(
      text.replace('    # about a\n    a:\n        command: "x"   # why\n', ''),
    );
    expect(await edit(text, remove('servers', 'b'))).toBe(text.replace('    # about b\n    b: { command: y }\n', ''));
    expect(await edit(text, append(['denied_tools', 'a'], 't'))).toBe(`${text}denied_tools:\n  a:\n    - t\n`);
  });

  it('lists in lines keep their format', async () => {
    const list = 'servers:\n- namespace: a # why\n  command: x\n- namespace: b\n  command: y\n# end\nlock: off\n';
    expect(await edit(list, append(['servers'], { namespace: 'c', args: ['-y'] }))).toBe(
      list.replace('y\n# end', 'y\n- namespace: c\n  args:\n    - -y\n# end'),
    );
    expect(await edit(list, remove('servers', 0))).toBe(list.replace('- namespace: a # why\n  command: x\n', ''));
    expect(await edit(list, set(['servers', 1, 'enabled'], false))).toBe(
      list.replace('command: y\n', 'command: y\n  enabled: false\n'),
    );
  });

  it.each([
    ['in brackets', '# head\nservers: [{ namespace: a, command: x }] # why\n'],
    ['the only one', '# head\nservers:\n  # why\n  - namespace: a\n    command: x\n'],
    ['no value', '# why\nservers:\nlock: off\n'],
    ['no content', '# why\n'],
  ])('comments stay in what is written otherwise: %s', async (_, written) => {
    const more = await edit(written, append(['servers'], { namespace: 'b', command: 'y' }));
    expect(more).toContain('# why');
    if (written.includes('namespace')) expect(await edit(written, remove('servers', 0))).toContain('# head');
  });
});

describe('JSON', () => {
  it.each([
    ['two spaces', '{\n  // mine\n  "mcpServers": {\n    "a": { "command": "x" } // why\n  }\n}\n', '  '],
    ['tabs', '{\n\t"mcpServers": {\n\t\t"a": { "command": "x" }\n\t}\n}', '\t'],
  ])('comments and indentation stay: %s', async (_, text, indent) => {
    const more = await editText(text, 'x.json', [set(['mcpServers', 'b'], { command: 'y' })]);
    expect(more).toContain(`\n${indent}${indent}"b": {\n${indent.repeat(3)}"command": "y"\n`);
    for (const line of text.split('\n').filter((one) => one.includes('//')))
      expect(more).toContain(line.match(/\/\/.*/)![0]);
    const off = await editText(text, 'x.json', [set(['mcpServers', 'a', 'disabled'], true)]);
    expect(off).toContain('"disabled": true');
  });

  it('a byte order mark stays', async () => {
    expect(await editText('\uFEFF{}', 'x.json', [set(['a'], 1)])).toMatch(/^\uFEFF\{/);
  });
});

const FILES = ['a.toml', 'a.yaml', 'a.json'] as const;

it('an edit says exactly what it should, or is refused, whatever the values are', async () => {
  const name = fc.string({ minLength: 1, maxLength: 6 }).filter((one) => one !== '__proto__');
  const entry = fc.record({
    command: fc.string({ maxLength: 8 }),
    args: fc.array(fc.string({ maxLength: 8 }), { maxLength: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...FILES),
      fc.uniqueArray(name, { minLength: 1, maxLength: 4 }),
      entry,
      async (file, names, value) => {
        // Every edit is compared with what it should be: a mistake throws.
        const added = await editText(
          '',
          file,
          names.map((one) => set(['servers', one], value)),
        );
        const off = await editText(
          added,
          file,
          names.map((one) => set(['servers', one, 'enabled'], false)),
        );
        await editText(
          off,
          file,
          names.map((one) => remove('servers', one)),
        );
      },
    ),
    { numRuns: 60 },
  );
});
