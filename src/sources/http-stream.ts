/** The stream on which a server over HTTP may speak unasked. Those without one answer with another status, or with no stream. */
import type { Dispatcher } from 'undici';
import type { Message } from '../protocol/message.ts';
import { createSseReader, type SseReader } from '../protocol/sse.ts';
import type { ListenRequest } from './connection.ts';
import { hearAcknowledged, isListenAnswer } from './handshake.ts';
import { TooLarge } from './http-exchange.ts';
import { isUnreachable, NOT_HERE, reach } from './http-refusal.ts';
import { keepListening, type Listening } from './listening.ts';

export interface HttpStream {
  /** Whether the server speaks on it; null as long as it never has. */
  readonly isSpeaking: boolean | null;
  /** Opens it, or replaces it; null ends what a modern server was asked for, and is how to listen to an earlier one. */
  listen(request: ListenRequest | null, isNeeded: boolean): void;
  /** The server's word that it has taken a request to listen. */
  acknowledged(message: Message): void;
  /** Takes a response, if it is one to a request to listen. */
  settle(message: Message): boolean;
  stop(): void;
}

export interface HttpStreamEvents {
  receive(message: Buffer): void;
  /** The server does not know us any more. */
  forgotten(): void;
  /** The server cannot be reached. */
  unreachable(reason: string): void;
  /** Changes may have gone by unheard. */
  missed(): void;
}

export function createHttpStream(
  dispatch: (options: Pick<Dispatcher.DispatchOptions, 'method' | 'body'>, handler: Dispatcher.DispatchHandler) => void,
  maxMessage: number,
  events: HttpStreamEvents,
): HttpStream {
  let listening: Listening | null = null;
  let listened: ListenRequest | null = null;
  let stream: Dispatcher.DispatchController | null = null;
  /** Those that tell of changes until their successor does. */
  const replaced: Dispatcher.DispatchController[] = [];
  let isSpeaking: boolean | null = null;
  let stopped = false;

  function endReplaced(): void {
    for (const one of replaced.splice(0)) one.abort(new Error('replaced'));
  }

  function open(request: ListenRequest | null): void {
    let reader: SseReader | null = null;
    let mayReturn = false;
    // Another one may have taken its place.
    const isCurrent = () => listened === request;
    const silence = () => {
      if (!isCurrent()) return;
      stream = null;
      if (isSpeaking) isSpeaking = false;
    };
    dispatch(request === null ? { method: 'GET' } : { method: 'POST', body: request.message }, {
      onRequestStart(controller) {
        // Replaced before it began, when there was nothing to stop yet: everything would be heard twice.
        if (isCurrent()) stream = controller;
        else controller.abort(new Error('replaced'));
      },
      onResponseStart(controller, status, headers) {
        if (status === 200 && String(headers['content-type'] ?? '').startsWith('text/event-stream')) {
          isSpeaking = true;
          mayReturn = true;
          listening?.taken();
          const tooLong = () => controller.abort(new TooLarge(maxMessage));
          reader = createSseReader(maxMessage, (data) => data.length > 0 && events.receive(data), tooLong);
        } else if (isSpeaking !== null && !stopped) {
          // Without a stream before, it only says that there is none.
          if (NOT_HERE.includes(status)) events.forgotten();
          else mayReturn = true;
        }
      },
      onResponseData(_controller, chunk) {
        reader?.push(chunk);
      },
      onResponseEnd() {
        silence();
        if (!isCurrent()) return;
        if (mayReturn) listening?.lost();
        else request?.refused();
      },
      onResponseError(_controller, error) {
        silence();
        if (stopped || !isCurrent()) return;
        if (isUnreachable(error)) events.unreachable(reach(error));
        else listening?.lost();
      },
    });
  }

  return {
    get isSpeaking() {
      return isSpeaking;
    },
    listen(request, isNeeded) {
      listening?.stop();
      if (stream !== null) replaced.push(stream);
      stream = null;
      listened = request;
      listening = isNeeded ? keepListening(() => open(request), events.missed) : null;
      if (request === null) endReplaced();
    },
    acknowledged(message) {
      if (hearAcknowledged(message, listened)) endReplaced();
    },
    settle(message) {
      if (listened === null || !isListenAnswer(message, listened.id)) return false;
      if (message.errorStart >= 0) {
        // It will not do better the next time.
        listening?.stop();
        isSpeaking = null;
        listened.refused();
      }
      return true;
    },
    stop() {
      stopped = true;
      listening?.stop();
      stream?.abort(new Error('closed'));
      endReplaced();
    },
  };
}
