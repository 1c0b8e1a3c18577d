// `npm run build`: builds dist/, even if it is current.
import { build, ensureInstalled } from './setup.mjs';

try {
  await ensureInstalled();
  await build();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
