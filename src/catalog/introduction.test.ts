import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Introduction, instruct } from './introduction.ts';

const server = (key: string, instructions: string): Introduction => ({
  key,
  namespace: key,
  prefix: `${key}_`,
  description: '',
  about: '',
  instructions,
});

describe('instructions for models', () => {
  it('are ours, then those of each server under its name', () => {
    const servers = [server('git', 'Commit often.'), server('mute', ''), server('fs', 'Read first.')];
    expect(instruct(servers, 'Ours.', 2_000)).toBe(
      'Ours.\n\n# Server "git" (its names begin with "git_")\n\nCommit often.\n\n# Server "fs" (its names begin with "fs_")\n\nRead first.',
    );
  });

  it('of servers are cut to equal lengths if they are too long, and say where to read the rest', () => {
    const servers = [server('a', 'long '.repeat(1_000)), server('b', 'Short.'), server('c', 'word '.repeat(900))];
    const text = instruct(servers, 'Ours.', 2_000);
    expect(text.length).toBeGreaterThan(1_950);
    expect(text.length).toBeLessThanOrEqual(2_000);
    expect(text.startsWith('Ours.\n\nInstructions of servers that end with "…" are cut.')).toBe(true);
    expect(text).toContain('toolgate://catalog');
    expect(text).toContain('Short.');
    expect(text.match(/long…|word…/g)).toHaveLength(2);
    expect(instruct(servers, 'Ours.', Number.POSITIVE_INFINITY)).toContain('word '.repeat(900));
  });

  it('never need more room, and never lose our own', () => {
    const servers = fc.array(fc.tuple(fc.string({ minLength: 1 }), fc.lorem({ maxCount: 200 })), { maxLength: 80 });
    fc.assert(
      fc.property(servers, fc.string({ maxLength: 1_000 }), (given, own) => {
        const text = instruct(
          given.map(([key, said]) => server(key, said)),
          own,
          2_000,
        );
        expect(text.length).toBeLessThanOrEqual(2_000);
        expect(text.startsWith(own)).toBe(true);
      }),
    );
  });
});
