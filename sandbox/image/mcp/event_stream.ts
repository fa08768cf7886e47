/** A server-sent event with data. */
interface StreamEvent {
  /** Defaults to `message`. */
  readonly type: string;
  readonly data: string;
}

/** The state of a stream besides its events. */
export interface StreamState {
  /** The last event id; a resumed stream continues after it. */
  readonly lastEventId: string | null;
  /** The delay before reconnecting; null if the stream has not set one. */
  readonly retryMs: number | null;
}

/**
 * Parses a server-sent event stream incrementally (WHATWG HTML, Server-sent events). An incomplete event is dropped. It is a
 * parser of our own because the files of this folder run in images as they are, without any package.
 */
export class EventStreamReader {
  readonly #decoder = new TextDecoder();
  readonly #maxCharacters: number;
  #rest = '';
  #data: string[] = [];
  #dataLength = 0;
  #type = '';
  #lastEventId: string | null = null;
  #retryMs: number | null = null;
  #isFirst = true;

  /** `maxCharacters`: a longer event or line is an error. */
  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters;
  }

  get state(): StreamState {
    return { lastEventId: this.#lastEventId, retryMs: this.#retryMs };
  }

  /** Returns the events that a piece completes. Throws if one is too long. */
  push(chunk: Uint8Array): readonly StreamEvent[] {
    const events: StreamEvent[] = [];
    let text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    if (this.#isFirst && text !== '') {
      text = text.replace(/^\u{feff}/u, '');
      this.#isFirst = false;
    }
    // A carriage return at the end may be half of a line break.
    const end = text.endsWith('\r') ? text.length - 1 : text.length;
    const lines = text.slice(0, end).split(/\r\n|\r|\n/);
    this.#rest = (lines.pop() ?? '') + text.slice(end);
    for (const line of lines) {
      const event = this.#line(line);
      if (event !== null) events.push(event);
    }
    if (this.#rest.length + this.#dataLength > this.#maxCharacters)
      throw new Error('an event of the stream is too long');
    return events;
  }

  #line(line: string): StreamEvent | null {
    if (line === '') return this.#event();
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') {
      this.#data.push(value);
      this.#dataLength += value.length;
    } else if (name === 'event') this.#type = value;
    else if (name === 'id' && !value.includes('\0')) this.#lastEventId = value;
    else if (name === 'retry' && /^\d{1,9}$/.test(value)) this.#retryMs = Number(value);
    return null;
  }

  #event(): StreamEvent | null {
    const [type, data] = [this.#type || 'message', this.#data.join('\n')];
    const isEmpty = this.#data.length === 0;
    this.#type = '';
    this.#data = [];
    this.#dataLength = 0;
    return isEmpty || data === '' ? null : { type, data };
  }
}
