import { runPart } from './pages.ts';

runPart(3);
