import { runPart } from './pages.ts';

runPart(1);
