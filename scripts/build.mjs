// `npm run build`: dist/ afresh from src/.
import { build, ensureInstalled } from './setup.mjs';

try {
  await ensureInstalled();
  await build();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
