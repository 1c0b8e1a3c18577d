import { describeUpstream } from './run.ts';

describeUpstream({ era: 'modern', transport: 'stdio' });
