/** The section `limits`: maximum sizes for the whole gateway. */
import type * as z from 'zod';
import { count, section, size } from './fields.ts';

export interface LimitsConfig {
  /** Bytes of one request. */
  readonly body: number;
  /** Nesting of one request. */
  readonly depth: number;
  /** Bytes of one message of an upstream server. */
  readonly message: number;
  /** Most items on one page of a list; null puts all on one. */
  readonly page: number | null;
  /** Bytes of one result; null for any number. */
  readonly maxResult: number | null;
  /** Bytes of events kept for each session. */
  readonly replay: number;
  /** Bytes that one client may leave unread, and that all clients may together. */
  readonly unread: number;
  readonly unreadTotal: number;
  /** Messages of one batch. */
  readonly batch: number;
  /** Resources that one client may be subscribed to. */
  readonly subscriptions: number;
}

export const limitsSchema = section({
  body: size().prefault('4MiB').describe('Size of one request.'),
  depth: count(1, 10_000).prefault(64).describe('Nesting of one request.'),
  message: size().prefault('64MiB').describe('Size of one message of an upstream server.'),
  max_result: size()
    .optional()
    .describe('Size of one result, unless its server or tool has its own limit. Default: any size.'),
  page: count(1, 1_000_000)
    .optional()
    .describe('Maximum number of items on one page of a list; clients ask for the next. Default: all on one page.'),
  replay: size()
    .prefault('4MiB')
    .describe('Size of the events kept for each session, for five minutes, for a client that lost its stream.'),
  unread: size()
    .prefault('8MiB')
    .describe('How much a client may leave unread: the next message beyond that ends its stream.'),
  unread_total: size()
    .prefault('256MiB')
    .describe('How much all clients together may leave unread: beyond that the stream of the slowest one ends.'),
  batch: count(1, 100_000).prefault(100).describe('Messages of one batch, which revisions up to 2025-03-26 allow.'),
  subscriptions: count(1, 1_000_000).prefault(1_000).describe('How many resources one client may be subscribed to.'),
}) satisfies z.ZodType<LimitsConfig>;
