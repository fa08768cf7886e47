/** The format of a reply's body, according to its Content-Type. Independent of any secret. */
export interface ReplyFormat {
  /** Whether the format has escapes. */
  readonly isText: boolean;
  /** Creates a finder for the ends of its parts (events, lines, messages); null if the format has none. */
  readonly partEnds: () => PartEnds | null;
}

/**
 * Takes the chunks of one body in order. Returns the end of the last complete part in this chunk (after its last byte), or
 * -1. Everything up to there may be sent at once, so that a stream of parts stays live.
 */
export type PartEnds = (chunk: Uint8Array) => number;

const LF = 0x0a;
const CR = 0x0d;

/** Text of an unknown format. */
export const PLAIN_TEXT: ReplyFormat = { isText: true, partEnds: () => null };
/** Text in lines. */
export const LINES: ReplyFormat = { isText: true, partEnds: () => endOfLines };

const EVENTS: ReplyFormat = { isText: true, partEnds: endsOfEvents };
const BINARY: ReplyFormat = { isText: false, partEnds: () => null };
/** A flag, then four bytes of length (the gRPC protocol over HTTP, "Length-Prefixed-Message"). */
const GRPC: ReplyFormat = {
  isText: false,
  partEnds: () => endsOfMessages({ headerBytes: 5, lengthAt: 1, extraBytes: 5 }),
};
/** Four bytes with the length of the whole message (Amazon's event stream encoding). */
const AWS_EVENTS: ReplyFormat = {
  isText: false,
  partEnds: () => endsOfMessages({ headerBytes: 4, lengthAt: 0, extraBytes: 0 }),
};

const FORMATS: readonly (readonly [type: RegExp, format: ReplyFormat])[] = [
  [/^text\/event-stream$/, EVENTS],
  // A JSON string contains no raw line break, so a secret in one never spans two lines.
  [/^(?:text\/plain|application\/(?:[\w.-]+\+)?(?:json|json-seq|jsonl|ndjson|x-ndjson|jsonlines|x-jsonlines))$/, LINES],
  [/^application\/grpc(?:-web)?(?:\+.*)?$/, GRPC],
  [/^application\/vnd\.amazon\.eventstream$/, AWS_EVENTS],
  [
    /^(?:text\/.*|.*\b(?:xml|html|javascript|ecmascript|yaml|x-www-form-urlencoded|graphql).*|multipart\/.*|)$/,
    PLAIN_TEXT,
  ],
];

/** The format for a Content-Type; text if there is none. */
export function replyFormatOf(contentType: string): ReplyFormat {
  const type = (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
  return FORMATS.find(([pattern]) => pattern.test(type))?.[1] ?? BINARY;
}

function endOfLines(chunk: Uint8Array): number {
  return chunk.lastIndexOf(LF) + 1 || -1;
}

/** An event ends with an empty line; a line with LF, CR or both (HTML, section 9.2.6). */
function endsOfEvents(): PartEnds {
  let before = 0;
  let beforeThat = 0;
  return (chunk) => {
    const end = endOfLastEvent(chunk, before, beforeThat);
    beforeThat = chunk.length > 1 ? (chunk.at(-2) ?? 0) : before;
    before = chunk.at(-1) ?? before;
    return end;
  };
}

/** `before` and `beforeThat` are the two bytes before the chunk. */
function endOfLastEvent(chunk: Uint8Array, before: number, beforeThat: number): number {
  const at = (index: number): number => (index >= 0 ? (chunk[index] ?? 0) : index === -1 ? before : beforeThat);
  for (let index = chunk.length - 1; index >= 0; index -= 1) {
    const byte = at(index);
    if (byte !== LF && byte !== CR) continue;
    const [last, secondLast] = [at(index - 1), at(index - 2)];
    // LF LF, CR CR, LF CR, and (LF or CR) CR LF; CR LF alone is one line end.
    if (byte === CR && (last === CR || last === LF)) return index + 1;
    if (byte === LF && (last === LF || (last === CR && (secondLast === LF || secondLast === CR)))) return index + 1;
  }
  return -1;
}

interface MessageLayout {
  readonly headerBytes: number;
  /** The offset of the four length bytes in the header. */
  readonly lengthAt: number;
  /** The bytes that the length does not count. */
  readonly extraBytes: number;
}

/** Messages that start with their length. After an impossible length everything counts as one message. */
function endsOfMessages({ headerBytes, lengthAt, extraBytes }: MessageLayout): PartEnds {
  const header: number[] = [];
  let left = 0;
  return (chunk) => {
    let end = -1;
    for (let at = 0; at < chunk.length;) {
      if (header.length < headerBytes) {
        header.push(chunk[at] ?? 0);
        at += 1;
        if (header.length < headerBytes) continue;
        const told = header.slice(lengthAt, lengthAt + 4).reduce((total, byte) => total * 256 + byte, 0);
        const length = told + extraBytes;
        left = length < headerBytes ? Infinity : length - headerBytes;
      }
      const step = Math.min(left, chunk.length - at);
      at += step;
      left -= step;
      if (left > 0) continue;
      end = at;
      header.length = 0;
    }
    return end;
  };
}
