import type { ScrubPatterns } from './patterns.ts';
import { StreamScrubber } from './stream_scrubber.ts';
import { frameHeaderLength, isClose, isControl, readFrameHeader } from './web_socket_frame.ts';
import type { FrameHeader } from './web_socket_frame.ts';

/** A part of the output that is still to come: bytes as they are, or a count of payload bytes the scrubber will give. */
type Slot = { readonly raw: Uint8Array } | { readonly raw: null; payloadLength: number };

/** More than this never waits behind a held tail: the tail is masked instead. */
const MAX_WAITING_BYTES = 64 * 1024;

/**
 * Masks matches in the messages of a WebSocket's server (RFC 6455 section 5), also across the fragments of one message.
 * Frame headers, lengths and order stay as they are. A tail waits only within a message; control frames that come meanwhile
 * wait behind it. A frame with the mask bit, which no client may accept from a server, passes unread.
 */
export class WebSocketScrubber {
  readonly #patterns: ScrubPatterns;
  readonly #message: StreamScrubber;
  /** The bytes of a frame header that is not whole yet. */
  #header: number[] = [];
  #frame: FrameHeader | null = null;
  #payloadLeft = 0;
  #slots: Slot[] = [];
  #waitingBytes = 0;
  /** Scrubbed payload that has not been given out. */
  #scrubbed: Uint8Array[] = [];

  constructor(patterns: ScrubPatterns) {
    this.#patterns = patterns;
    this.#message = new StreamScrubber(patterns);
  }

  push(chunk: Uint8Array): Uint8Array[] {
    if (this.#patterns.isEmpty) return [chunk];
    for (let at = 0; at < chunk.length;) {
      at = this.#frame === null ? this.#readHeader(chunk, at) : this.#readPayload(this.#frame, chunk, at);
    }
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#scrubbed.push(...this.#message.maskHeld());
    return this.#takeOutput();
  }

  /** All that still waits, when no more bytes come. */
  flush(): Uint8Array[] {
    this.#endMessage();
    if (this.#header.length > 0) this.#addRaw(Uint8Array.from(this.#header));
    this.#header = [];
    return this.#takeOutput();
  }

  #readHeader(chunk: Uint8Array, from: number): number {
    let at = from;
    while (at < chunk.length && !this.#headerIsWhole()) {
      this.#header.push(chunk[at] ?? 0);
      at += 1;
    }
    if (this.#headerIsWhole()) this.#beginFrame(readFrameHeader(this.#header));
    return at;
  }

  #headerIsWhole(): boolean {
    const second = this.#header[1];
    return second !== undefined && this.#header.length >= frameHeaderLength(second);
  }

  #beginFrame(frame: FrameHeader): void {
    if (isClose(frame)) this.#endMessage();
    this.#addRaw(Uint8Array.from(this.#header));
    this.#header = [];
    this.#frame = frame;
    this.#payloadLeft = frame.payloadLength;
    if (frame.payloadLength === 0) this.#endFrame(frame);
  }

  #readPayload(frame: FrameHeader, chunk: Uint8Array, from: number): number {
    const payload = chunk.subarray(from, from + this.#payloadLeft);
    if (isControl(frame) || frame.masked) this.#addRaw(payload);
    else this.#scrub(payload);
    this.#payloadLeft -= payload.length;
    if (this.#payloadLeft === 0) this.#endFrame(frame);
    return from + payload.length;
  }

  #endFrame(frame: FrameHeader): void {
    this.#frame = null;
    if (frame.final && !isControl(frame)) this.#endMessage();
  }

  #endMessage(): void {
    this.#scrubbed.push(...this.#message.flush());
  }

  #scrub(payload: Uint8Array): void {
    const last = this.#slots.at(-1);
    if (last?.raw === null) last.payloadLength += payload.length;
    else this.#slots.push({ raw: null, payloadLength: payload.length });
    this.#scrubbed.push(...this.#message.push(payload));
  }

  /** `raw` may be part of the caller's chunk; what has to wait is copied when the output is taken. */
  #addRaw(raw: Uint8Array): void {
    this.#slots.push({ raw });
    this.#waitingBytes += raw.length;
  }

  /** The slots in order, as far as the scrubber has given their payload. */
  #takeOutput(): Uint8Array[] {
    const output: Uint8Array[] = [];
    let done = 0;
    for (const slot of this.#slots) {
      if (slot.raw === null) {
        this.#takePayload(slot, output);
        if (slot.payloadLength > 0) break;
      } else {
        output.push(slot.raw);
        this.#waitingBytes -= slot.raw.length;
      }
      done += 1;
    }
    this.#slots = this.#slots.slice(done).map((slot) => (slot.raw === null ? slot : { raw: new Uint8Array(slot.raw) }));
    return output;
  }

  #takePayload(slot: { payloadLength: number }, output: Uint8Array[]): void {
    while (slot.payloadLength > 0) {
      const [first] = this.#scrubbed;
      if (first === undefined) return;
      const piece = first.subarray(0, slot.payloadLength);
      output.push(piece);
      slot.payloadLength -= piece.length;
      if (piece.length === first.length) this.#scrubbed.shift();
      else this.#scrubbed[0] = first.subarray(piece.length);
    }
  }
}
