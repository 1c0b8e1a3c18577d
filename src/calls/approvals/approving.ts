/** What of a gateway has to do with a person's approval, put together. */
import { confirmationFor } from '../../access/confirm.ts';
import type { EventSink } from '../../base/events.ts';
import type { Config } from '../../config/config.ts';
import type { MetricsRegistry } from '../../observe/metrics.ts';
import { openApprovalBoard } from '../../store/approval-board.ts';
import { operatorKey } from '../../store/operator.ts';
import type { Approve } from '../dispatch.ts';
import { type Approvals, createApprovals } from './approvals.ts';

interface ApprovingOptions {
  /** Asked each time, because it may be replaced. */
  config(): Config;
  readonly events: EventSink;
  redact(text: string): string;
  readonly metrics: MetricsRegistry;
}

export interface Approving {
  readonly approvals: Approvals;
  readonly approve: Approve;
}

export function createApproving({ config, events, redact, metrics }: ApprovingOptions): Approving {
  const approvals = createApprovals({
    events,
    security: () => config().security,
    redact,
    openBoard: (decided) =>
      openApprovalBoard(config().dataDir, () => operatorKey(process.env), {
        decided,
        note: (message) => events.emit('note', { source: 'toolgate', message }),
      }),
    refused: (call, { code }) => metrics.refuse(call.by.usage, code),
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
