import { describeUpstream } from './run.ts';

describeUpstream({ era: 'legacy', transport: 'http' });
