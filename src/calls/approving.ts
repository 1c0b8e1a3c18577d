/** What of a gateway has to do with a person's approval, put together. */
import { confirmationFor } from '../access/confirm.ts';
import type { Config } from '../config/config.ts';
import type { Events } from '../events.ts';
import { openApprovalBoard } from '../store/approval-board.ts';
import { operatorKey } from '../store/operator.ts';
import { type Approvals, createApprovals } from './approvals.ts';
import type { Approve } from './dispatch.ts';
import type { FigureDesk } from './figures.ts';

interface ApprovingOptions {
  /** Asked each time, because it may be replaced. */
  config(): Config;
  readonly events: Events;
  redact(text: string): string;
  readonly figures: FigureDesk;
}

export interface Approving {
  readonly approvals: Approvals;
  readonly approve: Approve;
}

export function createApproving({ config, events, redact, figures }: ApprovingOptions): Approving {
  const approvals = createApprovals({
    events,
    security: () => config().security,
    redact,
    openBoard: (decided) =>
      openApprovalBoard(config().dataDir, () => operatorKey(process.env), {
        decided,
        note: (message) => events.emit('note', { source: 'toolgate', message }),
      }),
    refused: (call, { code }) => figures.refuse(call.by.usage, code),
  });
  return {
    approvals,
    approve: {
      hold: approvals.hold,
      ruleFor: ({ by, entry, message }) =>
        by.isOperator ? null : confirmationFor(config().security.confirm, by.agent, entry, message),
    },
  };
}
