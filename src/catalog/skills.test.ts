import { describe, expect, it } from 'vitest';
import { readSkills, skillOf, withPrefix } from './skills.ts';

const entry =
  '{"uri":"skill://acme/pdf/SKILL.md", "frontmatter":{"name":"pdf","description":"Fill \\"forms\\"","version":1.0},"resources":[{"uri":"skill://acme/pdf/SKILL.md","digest":"sha256:00","size":1.0},{"digest":"sha256:11","uri":"skill://acme/pdf/a.md","size":9007199254740993}]}';

function read(...entries: string[]) {
  return readSkills(Buffer.from(`{"skills":[${entries.join(',')}]}`));
}

describe('a skill', () => {
  it('becomes a template for its files, with its name and description', () => {
    const { items, problems } = read(entry);
    expect(problems).toEqual([]);
    expect(items).toMatchObject([{ kind: 'template', name: 'skill://acme/pdf/{+file}', description: 'Fill "forms"' }]);
    expect(JSON.parse(items[0]!.bytes.toString())).toMatchObject({ name: 'pdf' });
  });

  it('keeps its entry byte for byte', () => {
    expect(skillOf(read(entry).items[0]!)).toMatchObject({ uri: 'skill://acme/pdf/SKILL.md' });
    expect(skillOf(read(entry).items[0]!)!.entry.toString()).toBe(entry);
  });

  it('gets a prefix in front of its URIs, and nothing else changes', () => {
    const text = withPrefix(skillOf(read(entry).items[0]!)!, 'a+').toString();
    expect(text).toBe(entry.replaceAll('skill://', 'a+skill://'));
  });

  it('may have files that its server does not name', () => {
    const dynamic = '{"uri":"skill://x/SKILL.md","frontmatter":{"name":"x"},"resources":"dynamic"}';
    const skill = skillOf(read(dynamic).items[0]!)!;
    expect(withPrefix(skill, 'b+').toString()).toBe(dynamic.replace('skill://', 'b+skill://'));
  });
});

describe('what is no skill', () => {
  it.each([
    ['{"frontmatter":{"name":"x"}}', 'needs a "uri"'],
    ['{"uri":7,"frontmatter":{"name":"x"}}', 'needs a "uri"'],
    ['{"uri":"skill://x/README.md","frontmatter":{"name":"x"}}', 'ends with "/SKILL.md"'],
    ['{"uri":"skill://{x}/SKILL.md","frontmatter":{"name":"x"}}', 'without braces'],
    ['{"uri":"skill://x/SKILL.md"}', 'has no "frontmatter"'],
    ['{"uri":"skill://x/SKILL.md","frontmatter":{"name":[]}}', 'has no "frontmatter"'],
    ['"skill://x/SKILL.md"', 'needs a "uri"'],
    ['[]', 'needs a "uri"'],
    ['null', 'needs a "uri"'],
  ])('%s is left out and reported, and the others stay', (bad, why) => {
    const { items, problems } = read(bad, entry);
    expect(items).toHaveLength(1);
    expect(problems).toEqual([expect.stringContaining('skills/list: entry 1 was left out')]);
    expect(problems[0]).toContain(why);
  });

  it.each(['{}', '{"skills":{}}', '{"skills":null}'])('%s is no list', (result) => {
    expect(readSkills(Buffer.from(result)).problems).toEqual([expect.stringContaining('without a list')]);
  });

  it('is a template whose entry is about something else', () => {
    const { items } = read(entry);
    const item = items[0]!;
    const bytes = Buffer.from(
      item.bytes.toString().replace('"uri":"skill://acme/pdf/SKILL.md",', '"uri":"skill://other/SKILL.md",'),
    );
    expect(skillOf({ ...item, bytes })).toBeNull();
    expect(skillOf({ ...item, name: 'a+skill://acme/pdf/{+file}' })).toBeNull();
  });
});
