import { sensitiveHeaders, type ServerHttp2Stream, type ServerStreamResponseOptions } from 'node:http2';

import type { ReplyHead } from '../../shared/net/http/http1_head.ts';
import { interimFields, replyFieldList } from '../../shared/net/http/http2_head.ts';
import { INTERNAL_ERROR, NO_ERROR, StreamConnection } from '../../machine/connection/stream_connection.ts';
import { discardUnsent, type UnsentAllowance } from './discard_unsent.ts';
import type { ReplySink } from './relay_scrubbed.ts';

/** `sendDate`: no header is added to a reply. */
type RespondOptions = ServerStreamResponseOptions & { readonly sendDate: boolean };

/** The client's side of one request in a tunnel over HTTP/2. */
export class ClientStream extends StreamConnection<ServerHttp2Stream> implements ReplySink {
  readonly #unsent: UnsentAllowance;

  /** `unsent`: that of its connection. */
  constructor(stream: ServerHttp2Stream, unsent: UnsentAllowance) {
    super(stream, INTERNAL_ERROR);
    this.#unsent = unsent;
  }

  writeHead(head: ReplyHead, _raw: Buffer | null, isWhole: boolean): void {
    this.respond(Object.assign(replyFieldList(head), marksOf(head)), isWhole);
  }

  /** Starts the reply, which is `:status` and header fields; `isWhole` if it has no body. */
  respond(fields: readonly string[], isWhole: boolean): void {
    if (this.#isGone) return;
    const options: RespondOptions = { endStream: isWhole, waitForTrailers: !isWhole, sendDate: false };
    this.stream.respond(fields, options);
    if (isWhole) this.noteEnded();
  }

  /** Sends an interim reply (1xx); resolves when the client can take more. */
  async writeInterim(head: ReplyHead): Promise<void> {
    if (this.#isGone) return;
    this.stream.additionalHeaders({ ...interimFields(head), ...marksOf(head) });
    await this.waitForDrain();
  }

  writeBody(pieces: readonly Uint8Array[]): boolean {
    let roomy = true;
    for (const piece of pieces) roomy = this.writeInTurn(piece);
    return roomy;
  }

  /**
   * Discards what the client still sends of its body after our answer, within the connection's allowance: some clients read an
   * answer only when their body is sent, and would lose it with a reset.
   */
  async discardRest(): Promise<void> {
    if (this.isWhole && this.finished) return;
    const leave = this.#unsent.enter();
    if (leave === null) return;
    await discardUnsent(this, this.waitForEnd(), this.#unsent, () => this.#stop());
    leave();
  }

  /**
   * Frees the stream once its reply was sent. A client that is still sending its body is told to stop, without an error (RFC
   * 9113 section 8.1).
   */
  async finish(): Promise<void> {
    if (this.isWhole && this.finished) return;
    await this.waitForEnd();
    this.#stop();
  }

  #stop(): void {
    if (!this.stream.closed) this.stream.close(NO_ERROR);
    setImmediate(() => this.stream.destroy());
  }

  get #isGone(): boolean {
    return this.closed || this.stream.closed || this.stream.destroyed;
  }
}

/** What the upstream marked as never indexed stays so (RFC 7541 section 7.1.3). */
function marksOf({ neverIndexed = [] }: ReplyHead): { readonly [sensitiveHeaders]: string[] } {
  return { [sensitiveHeaders]: [...neverIndexed] };
}
