/** The two ends of a remote door: a client's output stream, and a gateway at a URL. */
import type { Writable } from 'node:stream';
import type { ClientTls } from '../../config/launch.ts';
import { oneLine } from '../../protocol/json.ts';
import { type ExchangeOutcome, exchange, openClient, type RemoteClient, type Sent } from './exchange.ts';

/** Which gateway to connect to, and how. */
export interface RemoteOptions {
  readonly url: string;
  /** Called for each request, because the token may be replaced. */
  headers(): Record<string, string>;
  /** Milliseconds that a request waits for an unreachable gateway. */
  readonly patience: number;
  note(message: string): void;
  /** Which authorities the gateway's certificate may be from, and the certificate to show. Default: those of the system. */
  readonly tls?: ClientTls;
}

const NEWLINE = Buffer.from('\n');

export class RemoteLink {
  readonly options: RemoteOptions;
  readonly output: Writable;
  /** Aborted when the door closes. */
  readonly closing = new AbortController();
  #opened: Promise<RemoteClient> | null = null;
  readonly #client = () => {
    this.#opened ??= openClient(this.options.tls);
    return this.#opened;
  };

  constructor(options: RemoteOptions, output: Writable) {
    this.options = options;
    this.output = output;
  }

  /** Sends a message to the client. */
  readonly write = (message: Buffer): void => {
    if (this.output.writable) this.output.write(Buffer.concat([oneLine(message), NEWLINE]));
  };

  /** Sends an HTTP request to the gateway. Never rejects. */
  request(sent: Sent, heard: (message: Buffer) => void): Promise<ExchangeOutcome> {
    return exchange(this.#client, this.options.url, sent, this.output, heard);
  }

  post(
    body: Buffer,
    headers: Record<string, string>,
    signal: AbortSignal,
    heard: (message: Buffer) => void,
    started?: Sent['started'],
  ): Promise<ExchangeOutcome> {
    return this.request({ method: 'POST', headers, body, signal, ...(started && { started }) }, heard);
  }
}
