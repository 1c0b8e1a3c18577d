import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CATEGORIES, type Category, categoryOf, categoryProblem, isOfCategory } from './category.ts';
import { type Entry, toEntry } from './entry.ts';
import { readItems } from './item.ts';

function entry(tool: { name: string; description?: string; annotations?: object }, server = 'some'): Entry {
  const { items } = readItems('tool', Buffer.from(JSON.stringify({ tools: [{ inputSchema: {}, ...tool }] })));
  return toEntry({ id: 1, key: server, namespace: server }, items[0]!, tool.name);
}

const effectOf = (...given: Parameters<typeof entry>) => categoryOf(entry(...given)).effect;

describe('the guessed effect of public servers’ tools, without their annotations', () => {
  const file = new URL('../../test/fixtures/labelled-tools.tsv', import.meta.url);
  const rows = readFileSync(file, 'utf8').trim().split('\n').slice(1);
  const tools = rows.map((row) => {
    const [server, name, , effect, domain, description] = row.split('\t') as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    return { effect, domain, guessed: categoryOf(entry({ name, description }, server)) };
  });
  /** Precision and recall: how many of the guesses are right, and how many of the real ones were guessed. */
  const measured = (effect: string) => {
    const [said, are] = [
      tools.filter((one) => one.guessed.effect === effect),
      tools.filter((one) => one.effect === effect),
    ];
    const both = said.filter((one) => one.effect === effect).length;
    return [both / said.length, both / are.length];
  };

  it.each([
    ['read', 0.98, 0.92],
    ['write', 0.88, 0.97],
    ['destructive', 0.95, 0.95],
  ])('%s: precision at least %d, recall at least %d', (effect, leastPrecision, leastRecall) => {
    const [precision, recall] = measured(effect);
    expect(precision).toBeGreaterThanOrEqual(leastPrecision);
    expect(recall).toBeGreaterThanOrEqual(leastRecall);
  });

  it('never classifies a destructive tool as reading', () => {
    expect(tools.filter(({ effect, guessed }) => effect === 'destructive' && guessed.effect === 'read')).toEqual([]);
  });

  it('finds the domain of at least 95 percent of the tools', () => {
    expect(tools.filter(({ domain, guessed }) => domain === guessed.domain).length / tools.length).toBeGreaterThan(
      0.95,
    );
  });
});

describe('an annotation overrides the guessed effect', () => {
  it.each<[string, object, Category['effect'], Category['by']]>([
    ['delete_all', { readOnlyHint: true }, 'read', 'annotations'],
    ['get_thing', { destructiveHint: true }, 'destructive', 'annotations'],
    ['get_thing', { readOnlyHint: false }, 'write', 'annotations'],
    ['delete_thing', { destructiveHint: false }, 'write', 'annotations'],
    ['delete_thing', { readOnlyHint: false }, 'destructive', 'name'],
    ['get_thing', { destructiveHint: false }, 'read', 'name'],
    ['get_thing', { readOnlyHint: 'yes' }, 'read', 'name'],
    ['delete_thing', {}, 'destructive', 'name'],
  ])('%s %j: %s by %s', (name, annotations, effect, by) => {
    expect(categoryOf(entry({ name, annotations }))).toMatchObject({ effect, by });
  });
});

describe('the effect guessed from a tool name', () => {
  it.each([
    ['create_or_update_file', 'write'],
    ['read_and_delete', 'destructive'],
    ['monitor_create', 'write'],
    ['deleteApiComment', 'destructive'],
    ['API-get-user', 'read'],
    ['listing_things', 'read'],
    ['execute_sql', 'destructive'],
    ['run_code', 'destructive'],
    ['run_pipeline', 'write'],
  ])('%s: %s', (name, effect) => {
    expect(effectOf({ name })).toBe(effect);
  });

  it('ignores verbs in the server’s name', () => {
    expect(effectOf({ name: 'search_delete' }, 'search')).toBe('destructive');
    expect(effectOf({ name: 'clean_get' }, 'clean')).toBe('read');
  });

  it('comes from the description if the name has no verb, and is write if neither says', () => {
    expect(categoryOf(entry({ name: 'frobnicate', description: 'Lists all frobs.' }))).toMatchObject({
      effect: 'read',
      by: 'description',
    });
    expect(categoryOf(entry({ name: 'frobnicate', description: 'A frob.' }))).toMatchObject({
      effect: 'write',
      by: 'nothing',
    });
  });

  it('is destructive if the name is vague and the description mentions a loss', () => {
    expect(
      effectOf({ name: 'write_file', description: 'Create a file or completely overwrite an existing file.' }),
    ).toBe('destructive');
    expect(effectOf({ name: 'query', description: 'Run a read-only SQL query' })).toBe('read');
    expect(effectOf({ name: 'query', description: 'Execute a raw SQL query' })).toBe('destructive');
  });
});

describe('a category: pattern in a list', () => {
  it('matches by effect, by domain, by both, or by a pattern over them', () => {
    const tool = entry({ name: 'delete_file' }, 'files');
    for (const wanted of ['destructive', 'files', 'files/destructive', 'files/*', '*/destructive'])
      expect(isOfCategory(`category:${wanted}`, tool), wanted).toBe(true);
    for (const wanted of ['read', 'web', 'files/read', 'unknown', ''])
      expect(isOfCategory(`category:${wanted}`, tool), wanted).toBe(false);
    expect(isOfCategory('category:unknown', entry({ name: 'frob' }))).toBe(true);
    expect(isOfCategory('category:write', entry({ name: 'frob' }))).toBe(true);
  });

  it('is refused if the category does not exist', () => {
    for (const one of CATEGORIES) expect(categoryProblem(`category:${one}`)).toBeNull();
    expect(categoryProblem('category:files/write')).toBeNull();
    expect(categoryProblem('read_file')).toBeNull();
    expect(categoryProblem('category:destuctive')).toBe(
      'there is no category "destuctive". Did you mean "destructive"?',
    );
    expect(categoryProblem('category:write/files')).toMatch(/^there is no category/);
    expect(categoryProblem('category:')).toMatch(/^there is no category/);
  });
});
