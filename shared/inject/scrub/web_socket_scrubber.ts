import type { ScrubPatterns } from './patterns.ts';
import { StreamScrubber } from './stream_scrubber.ts';
import type { FrameHeader } from './web_socket_frame.ts';
import {
  formatFrame,
  frameHeaderLength,
  isClose,
  isControl,
  MOST_CONTROL_BYTES,
  readFrameHeader,
} from './web_socket_frame.ts';

const CONTINUATION = 0;

/**
 * Masks matches in the frames of a WebSocket's server (RFC 6455 section 5): in messages, also across their fragments, and in
 * control frames. Nothing is held back after the end of a message. A message is sent as one frame, or in fragments whose
 * sizes depend on lengths alone (section 5.4 lets an intermediary choose them), so control frames never wait for it. A frame
 * that every client must refuse (masked, or a control frame over 125 bytes) passes unchanged.
 */
export class WebSocketScrubber {
  readonly #isEmpty: boolean;
  readonly #message: StreamScrubber;
  readonly #control: StreamScrubber;
  readonly #onMasked: () => void;
  /** The bytes of an incomplete frame header. */
  #header: number[] = [];
  #frame: FrameHeader | null = null;
  #payloadLeft = 0;
  #messageIsCounted = false;
  /** How the next fragment of the current message begins; null between messages. */
  #next: Pick<FrameHeader, 'opcode' | 'reserved'> | null = null;

  /** Calls `onMasked` for each message and each control frame with a masked match. */
  constructor(patterns: ScrubPatterns, onMasked: () => void = () => undefined) {
    this.#onMasked = onMasked;
    this.#isEmpty = patterns.isEmpty;
    this.#message = new StreamScrubber(patterns);
    this.#control = new StreamScrubber(patterns);
  }

  push(chunk: Uint8Array): Uint8Array[] {
    if (this.#isEmpty) return [chunk];
    const output: Uint8Array[] = [];
    for (let at = 0; at < chunk.length;) {
      at =
        this.#frame === null ? this.#readHeader(chunk, at, output) : this.#readPayload(this.#frame, chunk, at, output);
    }
    return output;
  }

  /** The held-back bytes of a truncated message. */
  flush(): Uint8Array[] {
    const output: Uint8Array[] = [];
    this.#sendFragment(this.#message.flush(), false, output);
    return output;
  }

  #readHeader(chunk: Uint8Array, from: number, output: Uint8Array[]): number {
    let at = from;
    while (at < chunk.length && !this.#headerIsWhole()) {
      this.#header.push(chunk[at] ?? 0);
      at += 1;
    }
    if (this.#headerIsWhole()) this.#beginFrame(readFrameHeader(this.#header), output);
    return at;
  }

  #headerIsWhole(): boolean {
    const second = this.#header[1];
    return second !== undefined && this.#header.length >= frameHeaderLength(second);
  }

  #beginFrame(frame: FrameHeader, output: Uint8Array[]): void {
    this.#frame = frame;
    this.#payloadLeft = frame.payloadLength;
    if (isClose(frame)) this.#sendFragment(this.#message.flush(), false, output);
    if (passesUnread(frame)) output.push(Uint8Array.from(this.#header));
    else if (!isControl(frame)) this.#next ??= frame;
    this.#header = [];
    if (frame.payloadLength === 0) this.#endFrame(frame, [], output);
  }

  #readPayload(frame: FrameHeader, chunk: Uint8Array, from: number, output: Uint8Array[]): number {
    const payload = chunk.subarray(from, from + this.#payloadLeft);
    this.#payloadLeft -= payload.length;
    if (passesUnread(frame)) output.push(payload);
    const clean = passesUnread(frame) ? [] : (isControl(frame) ? this.#control : this.#message).push(payload);
    if (this.#payloadLeft === 0) this.#endFrame(frame, clean, output);
    else if (!isControl(frame)) this.#sendFragment(clean, false, output);
    return from + payload.length;
  }

  /** `clean`: the bytes that the end of the frame released. */
  #endFrame(frame: FrameHeader, clean: readonly Uint8Array[], output: Uint8Array[]): void {
    this.#frame = null;
    if (passesUnread(frame)) return;
    if (isControl(frame)) {
      output.push(...formatFrame(frame, this.#control.flush()));
      if (this.#control.takeMasked()) this.#onMasked();
    } else if (frame.final) this.#sendFragment([...clean, ...this.#message.flush()], true, output);
    else this.#sendFragment(clean, false, output);
  }

  /** A fragment of the current message; none if there is nothing to send and the message continues. */
  #sendFragment(payload: readonly Uint8Array[], final: boolean, output: Uint8Array[]): void {
    if (this.#next === null || (payload.length === 0 && !final)) return;
    output.push(...formatFrame({ ...this.#next, final }, payload));
    this.#countMessage(final);
    this.#next = final ? null : { opcode: CONTINUATION, reserved: 0 };
  }

  /** A message counts as soon as something in it is masked, because an endless one has no end to count at. */
  #countMessage(isOver: boolean): void {
    if (this.#message.takeMasked() && !this.#messageIsCounted) {
      this.#messageIsCounted = true;
      this.#onMasked();
    }
    if (isOver) this.#messageIsCounted = false;
  }
}

function passesUnread(frame: FrameHeader): boolean {
  return frame.masked || (isControl(frame) && frame.payloadLength > MOST_CONTROL_BYTES);
}
