import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { errorCode } from '../../shared/model/error_code.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT, isUnreachable } from '../exit_codes.ts';
import type { CallOptions, HttpClient, StreamedReply } from '../terminal/http_client.ts';

/** Maximum size of an event; audit events are far smaller. */
const MAX_EVENT_CHARACTERS = 1024 * 1024;
const RECONNECT_MS = 1_000;

/** What following needs of a command. */
interface FollowingCall {
  readonly context: Pick<Call['context'], 'stop' | 'pause'>;
  readonly print: Pick<Call['print'], 'warn'>;
}

interface FollowedStream {
  readonly client: HttpClient;
  readonly query: CallOptions['query'];
  /** How many earlier events the first connection asks for. A later connection resumes after the last event received. */
  readonly backlog: number;
  readonly onOpen?: () => Promise<void>;
  /** Called with the data of the audit events that arrived together. */
  readonly onEvents: (events: readonly string[]) => void | Promise<void>;
}

/**
 * Follows the stream of audit events until the command is stopped. Reconnects when the stream ends or breaks off. Throws if
 * there is no answer to the first connection.
 */
export async function followEvents(call: FollowingCall, stream: FollowedStream): Promise<void> {
  const { stop, pause } = call.context;
  const state: StreamState = { lastId: null, hasAnswered: false };
  while (!stop.aborted) {
    try {
      await followOnce(stream, state, stop);
    } catch (error) {
      if (stop.aborted) break;
      if (!state.hasAnswered || !isUnreachable(error)) throw error;
      call.print.warn(`${error.message}; trying again`);
    }
    await pause(RECONNECT_MS, stop);
  }
}

interface StreamState {
  lastId: string | null;
  hasAnswered: boolean;
}

async function followOnce(stream: FollowedStream, state: StreamState, signal: AbortSignal): Promise<void> {
  const { client, query, backlog, onOpen, onEvents } = stream;
  const { lastId } = state;
  const response = await client.stream('/v1/audit-events/stream', {
    query: { ...query, ...(lastId === null && { backlog }) },
    headers: { accept: 'text/event-stream', ...(lastId !== null && { 'last-event-id': lastId }) },
    signal,
  });
  state.hasAnswered = true;
  await onOpen?.();
  for await (const events of eventsIn(readPieces(response, client.origin))) {
    state.lastId = events.findLast(({ id }) => id !== undefined)?.id ?? state.lastId;
    await onEvents(events.filter(({ event }) => event === 'audit').map(({ data }) => data));
  }
}

/** The body as it arrives. A lost connection is a `CliError`. */
async function* readPieces({ body }: StreamedReply, origin: string): AsyncGenerator<Uint8Array> {
  try {
    yield* body ?? [];
  } catch (error) {
    const why = errorCode(error instanceof Error ? error.cause : error) || 'the connection was lost';
    throw new CliError(EXIT.unreachable, `the audit events of ${origin} broke off (${why})`);
  }
}

/** Parses a stream into server-sent events. Yields the events that each piece completes. */
export async function* eventsIn(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<readonly EventSourceMessage[]> {
  const events: EventSourceMessage[] = [];
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARACTERS,
    onEvent: (event) => events.push(event),
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded')
        throw new CliError(EXIT.failed, 'an event of the stream is too large');
    },
  });
  const decoder = new TextDecoder();
  for await (const piece of pieces) {
    parser.feed(decoder.decode(piece, { stream: true }));
    if (events.length > 0) yield events.splice(0);
  }
}
