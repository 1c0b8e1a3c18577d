// `npm run build`: dist/ afresh from src/.
import { build } from './setup.mjs';

try {
  await build();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
