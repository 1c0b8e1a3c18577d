import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { readRequirements } from './requirements.ts';

it('reads requirements.txt and the files that it includes, each once', async () => {
  const folder = tempFolder({
    'requirements.txt':
      '# comment\nhttpx==1.*  # why\n-r more/one.txt\n--constraint=limits.txt\n-r https://example.com/x.txt\n',
    'more/one.txt': '-r two.txt\n--index-url https://example.com\\\n/simple\nrich\n-e ./own\n',
    'more/two.txt': '-r one.txt\npydantic; \\\n  python_version > "3"\n',
    'limits.txt': 'rich<20\n',
    'other.txt': 'not this\n',
  });
  const found = await readRequirements(folder, 'any');
  expect([...found!.files.keys()]).toEqual(['requirements.txt', 'more/one.txt', 'more/two.txt', 'limits.txt']);
  expect(found!.count).toBe(5);
});

it('finds no requirements without a file, and in an empty one', async () => {
  expect(await readRequirements(tempFolder(), 'registry')).toBeNull();
  expect(await readRequirements(tempFolder({ 'requirements.txt': '\n# nothing\n' }), 'registry')).toBeNull();
});

it('says which line includes a file that is missing or outside the folder', async () => {
  const missing = tempFolder({ 'requirements.txt': 'rich\n-r base.txt\n', 'base.txt': '\n-c gone.txt\n' });
  await expect(readRequirements(missing, 'registry')).rejects.toThrow(
    'base.txt, line 2: the file "gone.txt" does not exist.',
  );

  const outside = tempFolder({ 'secrets.txt': 'token=x\n' });
  const up = tempFolder({ 'requirements.txt': `-r ${outside}/secrets.txt\n` });
  const words = 'requirements.txt, line 1: "secrets.txt" is outside the folder. Copy it into the folder.';
  await expect(readRequirements(up, 'registry')).rejects.toThrow(words);
  const linked = tempFolder({ 'requirements.txt': '-r secrets.txt\n' });
  symlinkSync(join(outside, 'secrets.txt'), join(linked, 'secrets.txt'));
  await expect(readRequirements(linked, 'registry')).rejects.toThrow(words);
});
