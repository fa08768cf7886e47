/** An event of a server-sent event stream that has data. */
export interface StreamEvent {
  /** `message` unless the stream names another. */
  readonly type: string;
  readonly data: string;
}

/** What a stream says besides its events. */
export interface StreamState {
  /** The id of the last event that had one; what a resumed stream goes on after. */
  readonly lastEventId: string | null;
  /** How long to wait before connecting anew; null while the stream has not said. */
  readonly retryMs: number | null;
}

/**
 * Reads a server-sent event stream piece by piece (WHATWG HTML, Server-sent events). An event without its end is none. It is
 * a parser of our own because the files of this folder run in images as they are, without any package.
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

  /** `maxCharacters`: an event or a line that is longer is an error. */
  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters;
  }

  get state(): StreamState {
    return { lastEventId: this.#lastEventId, retryMs: this.#retryMs };
  }

  /** The events that a piece completes. Throws when one is too long. */
  push(chunk: Uint8Array): readonly StreamEvent[] {
    const events: StreamEvent[] = [];
    let text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    if (this.#isFirst && text !== '') {
      text = text.replace(/^\u{feff}/u, '');
      this.#isFirst = false;
    }
    // A carriage return at the end may be half of a line's end.
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
