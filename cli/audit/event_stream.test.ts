import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CliError, EXIT } from '../exit_codes.ts';
import { httpClient } from '../terminal/http_client.ts';
import { eventsIn, followEvents } from './event_stream.ts';

const stream = new TextEncoder().encode(
  ': hello\n\nevent: audit\nid: 7\ndata: {"a":1}\n\nevent: audit\r\ndata: x\r\ndata: ü\r\n\r\ndata: last\n\n',
);
const events = [
  { event: 'audit', data: '{"a":1}', id: '7' },
  { event: 'audit', data: 'x\nü', id: undefined },
  { event: undefined, data: 'last', id: undefined },
];

async function read(pieces: Uint8Array[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const several of eventsIn(pieces)) found.push(...several);
  return found;
}

test('finds the events and drops comments', async () => {
  expect(await read([stream])).toEqual(events);
});

test('finds the same events wherever the stream is split', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: stream.length }), { maxLength: 8 }), async (cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), stream.length];
      expect(await read(at.slice(1).map((end, index) => stream.slice(at[index], end)))).toEqual(events);
    }),
  );
});

test('limits the size of an event that never ends', async () => {
  await expect(read([new Uint8Array(2 * 1024 * 1024).fill(120)])).rejects.toThrow('too large');
});

type Piece = string | Error;

/** Follows streams that give these pieces, one stream for each connection, until the last has ended. */
async function follow(connections: readonly (readonly Piece[] | Error)[], onEvents?: () => void) {
  const stop = new AbortController();
  const warnings: string[] = [];
  const seen: string[] = [];
  const resumedAfter: (string | null)[] = [];
  let next = 0;
  const client = httpClient({
    origin: 'https://svc.example.test',
    token: null,
    name: 'the control plane',
    startFix: 'Start it.',
    fetch: (input, init) => {
      resumedAfter.push(new Request(input, init).headers.get('last-event-id'));
      const pieces = connections[next++];
      if (next >= connections.length) stop.abort();
      return pieces instanceof Error ? Promise.reject(pieces) : Promise.resolve(new Response(bodyOf(pieces ?? [])));
    },
  });
  const call = {
    context: { stop: stop.signal, pause: () => Promise.resolve() },
    print: { warn: (text: string) => void warnings.push(text) },
  };
  const take = (data: readonly string[]): void => void seen.push(...data);
  await followEvents(call, { client, query: {}, backlog: 0, onEvents: onEvents ?? take });
  return { warnings, seen, resumedAfter };
}

function bodyOf(pieces: readonly Piece[]): ReadableStream<Uint8Array> {
  const left = [...pieces];
  return new ReadableStream({
    pull: (controller) => {
      const piece = left.shift();
      if (piece === undefined) controller.close();
      else if (piece instanceof Error) controller.error(piece);
      else controller.enqueue(new TextEncoder().encode(piece));
    },
  });
}

const eventOf = (id: number): string => `event: audit\nid: ${id}\ndata: ${id}\n\n`;
const reset = (): Error =>
  new TypeError('terminated', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) });

test('a first connection that breaks off after its answer is made again, from the last event', async () => {
  const { warnings, seen, resumedAfter } = await follow([[eventOf(1), reset()], [eventOf(2)]]);
  expect(seen).toEqual(['1', '2']);
  expect(resumedAfter).toEqual([null, '1']);
  expect(warnings).toEqual(['the audit events of https://svc.example.test broke off (ECONNRESET); trying again']);
});

test('a first connection without an answer ends the command; a later one is made again', async () => {
  await expect(follow([reset(), []])).rejects.toMatchObject({ exitCode: EXIT.unreachable });
  const { warnings } = await follow([[eventOf(1)], reset(), [eventOf(2)]]);
  expect(warnings).toEqual([
    'the control plane at https://svc.example.test cannot be reached (ECONNRESET); trying again',
  ]);
});

test('what goes wrong with an event ends the command', async () => {
  const showing = follow([[eventOf(1)], [eventOf(2)]], () => {
    throw new TypeError('a fault of its own');
  });
  await expect(showing).rejects.toThrow('a fault of its own');
  await expect(follow([['x'.repeat(2 * 1024 * 1024)], []])).rejects.toBeInstanceOf(CliError);
});
