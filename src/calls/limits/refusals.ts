/** What callers are told who come up against a limit: which one, whose, and when to try again. */
import { GatewayError } from '../../base/errors.ts';
import type { Gate } from './gate.ts';
import type { Rate } from './rate.ts';

/** How long work that is under way may take nobody knows; a moment later there may be room. */
const A_MOMENT = 1;

export function busy({ owner, running, waiting }: Gate): GatewayError {
  return new GatewayError(
    'source_busy',
    `${owner} is busy: ${calls(running)} under way and ${waiting} waiting, which is all that its "concurrency" and "queue" allow. Try again in ${A_MOMENT} s.`,
    { details: { retryAfter: A_MOMENT } },
  );
}

export function waitedTooLong({ owner, limit }: Gate, ms: number): GatewayError {
  return new GatewayError(
    'source_busy',
    `${owner} is busy: the call has waited ${ms / 1000} s, because its "concurrency" allows ${calls(limit)} at one time. Try again in ${A_MOMENT} s.`,
    { details: { retryAfter: A_MOMENT } },
  );
}

export function tooFast({ owner, limit }: Rate, pause: number): GatewayError {
  const seconds = Math.ceil(pause / 1000);
  return new GatewayError(
    'rate_limited',
    `${owner} has had all the calls that its "rate" of ${limit.text} allows. Try again in ${seconds} s.`,
    { details: { retryAfter: seconds } },
  );
}

export function dayOver(owner: string, limit: number, left: number): GatewayError {
  const seconds = Math.ceil(left / 1000);
  return new GatewayError(
    'rate_limited',
    `${owner} has had the ${calls(limit)} of this day that its "calls_per_day" allows. The next day (UTC) begins in ${seconds} s.`,
    { details: { retryAfter: seconds } },
  );
}

export function argumentsTooLarge(owner: string, size: number, most: number): GatewayError {
  return new GatewayError(
    'too_large',
    `The arguments have ${size} bytes, more than the ${most} that "max_arguments" allows (${owner}). Send less.`,
  );
}

function calls(count: number): string {
  return count === 1 ? '1 call' : `${count} calls`;
}
