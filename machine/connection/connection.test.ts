import { afterEach, expect, test, vi } from 'vitest';

import { ScriptedStream, turns } from '../../sidecar/testing/scripted_stream.ts';
import { Connection, ConnectionLost } from './connection.ts';
import type { HeadRead } from './read_head.ts';
import { readHead } from './read_head.ts';

afterEach(() => void vi.useRealTimers());

test('returns chunks in order, then null, and accepts unread bytes back', async () => {
  const stream = new ScriptedStream();
  const connection = new Connection(stream);
  stream.send('one');
  stream.send('two');
  stream.send(null);
  expect((await connection.nextChunk())?.toString()).toBe('one');
  connection.putBack(Buffer.from('ne'));
  expect(connection.take()?.toString()).toBe('ne');
  expect((await connection.nextChunk())?.toString()).toBe('two');
  expect(await connection.nextChunk()).toBeNull();
  expect(connection.finished).toBe(true);
});

test.each([
  ['large chunks', 64 * 1024, 1024 * 1024],
  ['single bytes', 1, 4096],
])('stops reading an endless sender of %s if nobody reads', async (_name, size, mostBytes) => {
  const stream = new ScriptedStream();
  const connection = new Connection(stream);
  stream.sendForEver(Buffer.alloc(size));
  await turns();
  const sent = stream.sentBytes;
  expect(sent).toBeLessThanOrEqual(mostBytes + 64 * 1024);
  await turns();
  expect(stream.sentBytes).toBe(sent);
  while (connection.take() !== undefined);
  await turns();
  expect(stream.sentBytes).toBeGreaterThan(sent);
});

test('is lost for a reader that another one replaces, and for all readers if the stream fails', async () => {
  const stream = new ScriptedStream();
  const connection = new Connection(stream);
  const first = connection.nextChunk();
  const second = connection.nextChunk();
  await expect(first).rejects.toBeInstanceOf(ConnectionLost);
  stream.destroy(Object.assign(new Error('gone'), { code: 'ECONNRESET' }));
  await expect(second).rejects.toMatchObject({ code: 'ECONNRESET' });
  await expect(connection.nextChunk()).rejects.toBeInstanceOf(ConnectionLost);
  expect(connection.write('nobody')).toBe(true);
});

test('sends the pieces of one turn together, in order with direct writes', async () => {
  const stream = new ScriptedStream();
  const connection = new Connection(stream);
  connection.writeInTurn('one ');
  connection.writeInTurn('two ');
  connection.write('three');
  await Promise.resolve();
  expect(stream.text).toBe('');
  await turns();
  expect(stream.text).toBe('one two three');
  connection.write(' four');
  expect(stream.text).toBe('one two three four');
});

test('flushes gathered pieces on request and at the end, but not after it is gone', async () => {
  const [told, ended, gone] = [new ScriptedStream(), new ScriptedStream(), new ScriptedStream()];
  const connections = [told, ended, gone].map((stream) => new Connection(stream));
  for (const connection of connections) connection.writeInTurn('piece');
  connections[0]?.sendGathered();
  connections[1]?.end();
  connections[2]?.destroy();
  expect([told, ended, gone].map(({ text }) => text)).toEqual(['piece', 'piece', '']);
  await turns();
  expect([told, ended, gone].map(({ text }) => text)).toEqual(['piece', 'piece', '']);
  expect(connections[2]?.writeInTurn('late')).toBe(true);
});

test('is closed from the start if its stream is closed', async () => {
  const stream = new ScriptedStream();
  stream.destroy();
  await turns(2);
  const connection = new Connection(stream);
  expect(connection.closed).toBe(true);
  await expect(connection.nextChunk()).rejects.toBeInstanceOf(ConnectionLost);
});

test('calls back once on close, also if already closed, unless cancelled', async () => {
  const stream = new ScriptedStream();
  const connection = new Connection(stream);
  const calls: string[] = [];
  connection.onClosed(() => calls.push('kept'));
  connection.onClosed(() => calls.push('cancelled'))();
  connection.destroy();
  await turns(2);
  connection.onClosed(() => calls.push('late'));
  expect(calls).toEqual(['kept', 'late']);
});

test('tells one listener that the peer has finished after all bytes were read', async () => {
  const stream = new ScriptedStream();
  const connection = new Connection(stream);
  const calls: string[] = [];
  connection.onFinished(() => calls.push('replaced'));
  connection.onFinished(() => calls.push('told'));
  stream.send('last');
  stream.send(null);
  await turns(2);
  expect(calls).toEqual([]);
  connection.take();
  connection.onFinished(() => calls.push('at once'));
  expect(calls).toEqual(['told', 'at once']);
});

test('drains and flushes when the peer reads or is gone', async () => {
  const stream = new ScriptedStream({ reading: false });
  const connection = new Connection(stream);
  const steps: string[] = [];
  while (connection.write(Buffer.alloc(16 * 1024)));
  expect(connection.needsDrain).toBe(true);
  void connection.waitForDrain().then(() => steps.push('drained'));
  connection.end();
  void connection.waitForFlush().then(() => steps.push('flushed'));
  await turns();
  expect(steps).toEqual([]);
  stream.startReading();
  await turns();
  expect(steps).toContain('flushed');
  connection.destroy();
  await turns(2);
  await connection.waitForDrain();
  await connection.waitForFlush();
});

/** Whether a stream with unread bytes is dropped at its end or after this many milliseconds. */
function isDropped(ended: boolean, reads: boolean, staysConnected = true, laterMs = 3_600_000): boolean {
  const stream = new ScriptedStream({ reading: false });
  let isConnected = true;
  const connection = new Connection(stream, null, () => isConnected);
  connection.write('never read');
  if (ended) stream.emit('end');
  isConnected = staysConnected;
  connection.end();
  void connection.waitForFlush();
  if (reads) stream.emit('finish');
  vi.advanceTimersByTime(laterMs);
  return stream.destroyed;
}

test('drops only a peer that has finished sending and stopped reading', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  expect([isDropped(true, false), isDropped(false, false), isDropped(true, true)]).toEqual([true, false, false]);
});

test('drops a peer within a second if the system reports it gone, but not one that reads late', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  expect([isDropped(true, false, false, 1000), isDropped(true, false, true, 50_000)]).toEqual([true, false]);
});

test('detaches the stream with the bytes read ahead', async () => {
  const stream = new ScriptedStream();
  const connection = new Connection(stream);
  stream.send('ahead');
  await turns(2);
  connection.putBack(Buffer.from('read '));
  const released = connection.release();
  expect(released.read()?.toString()).toBe('read ahead');
  expect(released.listenerCount('data')).toBe(0);
});

test('reads a head split into any chunks and leaves the rest', async () => {
  const text = 'GET / HTTP/1.1\r\nHost: a\r\n\r\nrest';
  for (let cut = 1; cut < text.length; cut += 1) {
    const stream = new ScriptedStream();
    const connection = new Connection(stream);
    stream.send(text.slice(0, cut));
    const head = readHead(connection, 1024);
    await turns(2);
    stream.send(text.slice(cut));
    const read = await head;
    expect(read.kind === 'head' && read.bytes.toString()).toBe(text.slice(0, -4));
    let rest = '';
    await turns(2);
    for (let chunk = connection.take(); chunk; chunk = connection.take()) rest += chunk.toString();
    expect(rest).toBe('rest');
  }
});

async function readOf(text: string, end: 'finish' | 'lose' | 'none'): Promise<HeadRead> {
  const stream = new ScriptedStream();
  const head = readHead(new Connection(stream), 16);
  if (text !== '') stream.send(text);
  await turns(2);
  if (end === 'finish') stream.send(null);
  if (end === 'lose') stream.destroy();
  return head;
}

test('distinguishes a head that is too large, truncated or missing', async () => {
  expect(await readOf('x'.repeat(16), 'none')).toEqual({ kind: 'too_large' });
  expect(await readOf(`${'x'.repeat(13)}\r\n\r\n`, 'none')).toEqual({ kind: 'too_large' });
  expect(await readOf('GET', 'finish')).toEqual({ kind: 'truncated' });
  expect(await readOf('GET', 'lose')).toEqual({ kind: 'truncated' });
  expect(await readOf('', 'finish')).toEqual({ kind: 'end' });
  expect(await readOf('', 'lose')).toEqual({ kind: 'lost', code: 'ECONNRESET' });
});

test.each([
  ['without a byte that announces it', 0, 500, 'lost'],
  ['after a goodbye below the stream', 24, 500, 'finished'],
  ['that may have come with what was read last', 0, 50, 'finished'],
])('recognises an end %s', async (_name, goodbyeBytes, waitedMs, expected) => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const stream = new ScriptedStream();
  let receivedBytes = 100;
  const connection = new Connection(stream, () => receivedBytes);
  let seen = 'nothing';
  connection.onClosed(() => (seen = 'lost'));
  connection.onFinished(() => (seen = 'finished'));
  vi.advanceTimersByTime(waitedMs);
  receivedBytes += goodbyeBytes;
  stream.send(null);
  await turns(3);
  expect(seen).toBe(expected);
});

test('treats any end as orderly while nothing is expected of the peer', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const stream = new ScriptedStream();
  const connection = new Connection(stream, () => 100);
  connection.onFinished(() => undefined);
  connection.onFinished(null);
  vi.advanceTimersByTime(500);
  stream.send(null);
  expect(await connection.nextChunk()).toBeNull();
});
