import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { openExamples } from './examples.ts';

const failed = (error: unknown) => {
  throw error;
};

it('an agent that works on many tasks pushes out only what it learned itself', () => {
  const store = openExamples(tempFolder(), failed);
  const ada = { agent: 'ada', view: 'hers' };
  store.learn(ada, 's.tool', 'what ada asked');
  for (let task = 0; task < 200; task++) store.learn({ agent: 'bob', view: `task ${task}` }, 's.tool', 'flood');
  expect(store.of(ada).get('s.tool')).toEqual(['what ada asked']);
  expect(store.of({ agent: 'bob', view: 'task 199' }).size).toBe(1);
  expect(store.all()).toHaveLength(50);
});

it('what one owner learns is bounded as a whole, and the newest stays', async () => {
  const store = openExamples(tempFolder(), failed);
  const owner = { agent: 'ada', view: 'hers' };
  for (let tool = 0; tool < 600; tool++)
    for (let query = 0; query < 20; query++) store.learn(owner, `s.t${tool}`, `${tool} ${query} `.padEnd(200, 'x'));
  expect(store.of(owner).get('s.t599')).toHaveLength(20);
  expect(store.of(owner).has('s.t0')).toBe(false);
  await store.close();
  expect(readFileSync(store.path).length).toBeLessThan(200_000);
});

it('names that objects have anyway are names like others', async () => {
  const dataDir = tempFolder();
  const store = openExamples(dataDir, failed);
  for (const name of ['__proto__', 'constructor', 'toString']) store.learn({ agent: name, view: name }, name, name);
  await store.close();
  const again = openExamples(dataDir, failed);
  for (const name of ['__proto__', 'constructor', 'toString'])
    expect(again.of({ agent: name, view: name }).get(name)).toEqual([name]);
  expect(again.of({ agent: 'other', view: '' }).size).toBe(0);
});
