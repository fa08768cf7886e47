import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { CallOptions, HttpClient } from '../terminal/http_client.ts';

/** Maximum size of an event; audit events are far smaller. */
const MAX_EVENT_CHARACTERS = 1024 * 1024;
const RECONNECT_MS = 1_000;

export interface FollowedStream {
  readonly client: HttpClient;
  readonly query: CallOptions['query'];
  /** How many earlier events the first connection asks for. A later connection resumes after the last event received. */
  readonly backlog: number;
  readonly onOpen?: () => Promise<void>;
  /** Called with the data of the audit events that arrived together. */
  readonly onEvents: (events: readonly string[]) => void | Promise<void>;
}

/** Follows the stream of audit events until the command is stopped. Reconnects when the stream ends; a first connection that fails throws. */
export async function followEvents(call: Call, stream: FollowedStream): Promise<void> {
  const { stop, pause } = call.context;
  const state: StreamState = { lastId: null };
  for (let first = true; !stop.aborted; first = false) {
    try {
      await followOnce(stream, state, stop);
    } catch (error) {
      if (stop.aborted) break;
      if (first || (error instanceof CliError && error.exitCode !== EXIT.unreachable)) throw error;
      call.print.warn(`${error instanceof Error ? error.message : String(error)}; trying again`);
    }
    await pause(RECONNECT_MS, stop);
  }
}

interface StreamState {
  lastId: string | null;
}

async function followOnce(stream: FollowedStream, state: StreamState, signal: AbortSignal): Promise<void> {
  const { client, query, backlog, onOpen, onEvents } = stream;
  const { lastId } = state;
  const response = await client.stream('/v1/audit-events/stream', {
    query: { ...query, ...(lastId === null && { backlog }) },
    headers: { accept: 'text/event-stream', ...(lastId !== null && { 'last-event-id': lastId }) },
    signal,
  });
  await onOpen?.();
  for await (const events of eventsIn(response.body ?? [])) {
    state.lastId = events.findLast(({ id }) => id !== undefined)?.id ?? state.lastId;
    await onEvents(events.filter(({ event }) => event === 'audit').map(({ data }) => data));
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
      if (error.type === 'max-buffer-size-exceeded') throw new Error('an event of the stream is too large');
    },
  });
  const decoder = new TextDecoder();
  for await (const piece of pieces) {
    parser.feed(decoder.decode(piece, { stream: true }));
    if (events.length > 0) yield events.splice(0);
  }
}
