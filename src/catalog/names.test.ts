import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../test/support/random.ts';
import { exposedName, JOINED, mayBeNamed, type Naming, nextName, prefixOf } from './names.ts';

const flat: Naming = { names: 'flat', nameLimit: null };
const text = anyText({ minLength: 1, maxLength: 80 });
const namespace = fc.string({ unit: fc.constantFrom('a', 'B', '7', '_', '.', '-'), maxLength: 30 });
const naming: fc.Arbitrary<Naming> = fc.record({
  names: fc.constantFrom('join', 'flat'),
  nameLimit: fc.option(fc.integer({ min: 16, max: 70 })),
});

describe('exposedName', () => {
  it.each([
    ['git', 'status', 'git_status'],
    ['docker', 'build_image', 'docker_build_image'],
    ['context7', 'resolve-library-id', 'context7_resolve_library_id'],
    ['task-master', 'get_tasks', 'task_master_get_tasks'],
    ['server', 'tool.with.multiple.dots', 'server_tool_with_multiple_dots'],
    ['', 'a/b c', 'a_b_c'],
    ['a.b', '日本😀', 'a_b____'],
    ['', '\ud800', '_'],
  ])('builds a flat name from %s and %s', (namespace, name, expected) => {
    expect(exposedName('tool', namespace, name, flat)).toBe(expected);
    expect(exposedName('prompt', namespace, name, flat)).toBe(expected);
  });

  it('keeps every character if names are joined', () => {
    expect(exposedName('tool', 'task-master', 'get.日本', JOINED)).toBe('task-master_get.日本');
    expect(exposedName('tool', '', 'get.日本', JOINED)).toBe('get.日本');
  });

  it('leaves URIs readable in every naming scheme', () => {
    const strict: Naming = { names: 'flat', nameLimit: 16 };
    for (const kind of ['resource', 'template'] as const) {
      expect(exposedName(kind, 'my-files', 'file:///a-b/{c}', strict)).toBe('my-files_file:///a-b/{c}');
    }
  });

  it('shortens only names that are too long', () => {
    const short = (name: string) => exposedName('tool', 'a', name, { names: 'join', nameLimit: 20 });
    expect(short('x'.repeat(18))).toBe(`a_${'x'.repeat(18)}`);
    expect(short('x'.repeat(19))).toMatch(/^a_x{9}_[0-9a-f]{8}$/);
    expect(short('x'.repeat(19))).toBe('a_xxxxxxxxx_13484767');
    expect(short('x'.repeat(20))).not.toBe(short('x'.repeat(21)));
  });

  it('does not split a character when shortening', () => {
    const name = exposedName('tool', '', '😀'.repeat(20), { names: 'join', nameLimit: 16 });
    expect(name).toMatch(/^(?:😀){3}_[0-9a-f]{8}$/u);
  });

  it('is deterministic, within the length limit, and flat if required', () => {
    fc.assert(
      fc.property(namespace, text, naming, (namespace, name, naming) => {
        const exposed = exposedName('tool', namespace, name, naming);
        expect(exposedName('tool', namespace, name, { ...naming })).toBe(exposed);
        if (naming.names === 'flat') expect(exposed).toMatch(/^[A-Za-z0-9_]+$/);
        if (naming.nameLimit !== null) expect(exposed.length).toBeLessThanOrEqual(naming.nameLimit);
      }),
    );
  });
});

describe('nextName', () => {
  it('depends on the item and the attempt, and stays within the limit', () => {
    fc.assert(
      fc.property(namespace, text, naming, fc.nat(3), (namespace, name, naming, attempt) => {
        const taken = exposedName('tool', namespace, name, naming);
        const other = nextName(taken, 'key', name, attempt, naming);
        expect(nextName(taken, 'key', name, attempt, naming)).toBe(other);
        if (naming.names === 'flat') expect(other).toMatch(/^[A-Za-z0-9_]+_[0-9a-f]{8}$/);
        if (naming.nameLimit !== null) expect(other.length).toBeLessThanOrEqual(naming.nameLimit);
        expect(other).not.toBe(nextName(taken, 'key', name, attempt + 1, naming));
        expect(other).not.toBe(nextName(taken, 'another', name, attempt, naming));
      }),
    );
  });
});

describe('mayBeNamed', () => {
  it('is true for every name that a server of the namespace can have', () => {
    fc.assert(
      fc.property(namespace, text, naming, fc.constantFrom('tool', 'resource'), (namespace, name, naming, kind) => {
        const exposed = exposedName(kind, namespace, name, naming);
        expect(mayBeNamed(exposed, namespace, naming)).toBe(true);
        expect(mayBeNamed(nextName(exposed, 'key', name, 0, naming), namespace, naming)).toBe(true);
      }),
    );
  });

  it('is false for all other names', () => {
    expect(mayBeNamed('git_status', 'hub', JOINED)).toBe(false);
    expect(mayBeNamed('task_master_x', 'task-master', JOINED)).toBe(false);
    expect(mayBeNamed('task_master_x', 'task-master', flat)).toBe(true);
  });
});

it('the prefix of a namespace is spelled as in its exposed names', () => {
  expect([prefixOf('a-b', JOINED), prefixOf('a-b', flat), prefixOf('', flat)]).toEqual(['a-b_', 'a_b_', '']);
});
