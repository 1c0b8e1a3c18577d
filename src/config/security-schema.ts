/** What a person has to approve, and what agents may ask for, as users write it. */
import * as z from 'zod';
import { duration, flag, strictMap, textList, toolList } from './fields.ts';
import { conditionSchema } from './policy-schema.ts';

const agents = () => textList().optional().describe('The agents that it is about, or patterns. Default: all.');

const confirmSchema = strictMap({ ...conditionSchema.shape, agents: agents() }).meta({
  id: 'Confirm',
  description: 'Calls that wait until a person has approved them: those that fit everything said here.',
});

const grantSchema = strictMap({
  agents: agents(),
  tools: toolList().describe('The tools that may be asked for: `server.tool`, patterns over that, or categories.'),
  duration: duration(1).prefault('1h').describe('How long they may be used then.'),
  approval: flag().prefault(true).describe('`false` grants them at once, to whoever gives a reason.'),
}).meta({ id: 'Grant', description: 'What agents get for a while when they ask for it with `request_access`.' });

const promptSchema = strictMap({
  agents: agents(),
  tools: textList().describe('Tools of the client itself, such as `Bash` or `mcp__git__*`; patterns.'),
  action: z
    .enum(['allow', 'deny', 'ask'], { error: 'expected "allow", "deny" or "ask"' })
    .describe('What `approval_prompt` says: yes, no, or what a person says.'),
}).meta({
  id: 'Prompt',
  description: 'How the permission prompts of a client are answered; the first that fits holds.',
});

export const securitySchema = strictMap({
  dangerous_tools: z
    .record(z.string(), toolList(), { error: 'expected a map from servers to lists of names' })
    .optional()
    .describe(
      'Tools that wait for a person before every call. By the name of the server: its own names, patterns, or categories.',
    ),
  confirm: z
    .array(confirmSchema, { error: 'expected a list of rules' })
    .optional()
    .describe('Further calls that wait for a person.'),
  approvers: z
    .enum(['any', 'client', 'operator'], { error: 'expected "any", "client" or "operator"' })
    .prefault('any')
    .describe(
      '`client`: the person at the client is asked, where the client can do that. `operator`: whoever has the operator key. ' +
        '`any`: whichever of them answers first.',
    ),
  approval_timeout: duration(1).prefault('5m').describe('How long a call waits for a person.'),
  on_timeout: z
    .enum(['deny', 'allow'], { error: 'expected "deny" or "allow"' })
    .prefault('deny')
    .describe('What becomes of a call that nobody has decided on.'),
  grants: z
    .array(grantSchema, { error: 'expected a list of grants' })
    .optional()
    .describe('What agents may ask for with `request_access`. Default: anything, by approval.'),
  prompts: z
    .array(promptSchema, { error: 'expected a list of rules' })
    .optional()
    .describe('How `approval_prompt` answers. Default: as a person says.'),
});

export type SecurityFile = z.output<typeof securitySchema>;
