// Sets secrets one after the other and prints each: writer.mjs FOLDER NAME FROM COUNT [each]
//   each    gives every secret its own name; otherwise the same secret gets a higher number each time
import { openSecretStore } from '../../dist/index.js';

const [folder, name, from, count, each] = process.argv.slice(2);
const vault = { key: () => process.env.SECRETS_KEY, keyFile: null, allowInsecure: false, redactResults: true };
const store = openSecretStore(folder, vault, 1_000);
for (let i = Number(from); i < Number(from) + Number(count); i++) {
  await store.set(each === undefined ? name : `${name}_${i}`, null, `number ${i}`);
  process.stdout.write(`${i}\n`);
}
