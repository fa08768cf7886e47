/** One server-sent event. */
export interface StreamEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string | null;
}

/** Maximum size of an event; audit events are far smaller. */
const MAX_EVENT_CHARACTERS = 1024 * 1024;

/** Parses a text stream into server-sent events (WHATWG HTML, section 9.2.6). Comments only keep the connection open and are dropped. */
export class EventStreamParser {
  #rest = '';

  /** Returns the events that `text` completes. */
  push(text: string): StreamEvent[] {
    const blocks = (this.#rest + text).replaceAll('\r\n', '\n').split('\n\n');
    this.#rest = blocks.pop() ?? '';
    if (this.#rest.length > MAX_EVENT_CHARACTERS) throw new Error('an event of the stream is too large');
    return blocks.map(parseBlock).filter((event) => event.data !== '');
  }
}

function parseBlock(block: string): StreamEvent {
  const fields = block.split('\n').map((line) => /^([^:]*)(?:: ?([^]*))?$/.exec(line));
  const values = (name: string): string[] =>
    fields.filter((field) => field?.[1] === name).map((field) => field?.[2] ?? '');
  return {
    event: values('event').at(-1) ?? 'message',
    data: values('data').join('\n'),
    id: values('id').at(-1) ?? null,
  };
}
