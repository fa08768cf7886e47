const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** The events that end in a chunk: how many, and the end of the last one, or -1. */
interface EventsOfChunk {
  readonly count: number;
  readonly lastEnd: number;
}

export const NO_EVENTS: EventsOfChunk = { count: 0, lastEnd: -1 };

/** Finds the blank lines of a stream, each of which ends an event. A line ends with LF, CR or CRLF, which one stream may mix. */
export class EventScanner {
  #isLineEmpty = false;
  #isAfterReturn = false;

  scan(chunk: Uint8Array): EventsOfChunk {
    let count = 0;
    let lastEnd = -1;
    for (let index = 0; index < chunk.length; index += 1) {
      const byte = chunk[index];
      const isSecondOfEnd = byte === LINE_FEED && this.#isAfterReturn;
      this.#isAfterReturn = byte === CARRIAGE_RETURN;
      if (isSecondOfEnd) {
        if (lastEnd === index) lastEnd = index + 1;
        continue;
      }
      const isLineEnd = byte === LINE_FEED || byte === CARRIAGE_RETURN;
      if (isLineEnd && this.#isLineEmpty) {
        count += 1;
        lastEnd = index + 1;
      }
      this.#isLineEmpty = isLineEnd;
    }
    return { count, lastEnd };
  }
}
