import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventStreamReader } from './event_stream.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function read(text: string) {
  const reader = new EventStreamReader(1_000);
  return { events: reader.push(bytes(text)), state: reader.state };
}

describe('an event stream', () => {
  it.each([
    ['data: a\n\n', [{ type: 'message', data: 'a' }]],
    ['data:a\ndata: b\n\n', [{ type: 'message', data: 'a\nb' }]],
    ['event: ping\ndata: a\n\n', [{ type: 'ping', data: 'a' }]],
    ['data: a\r\n\r\ndata: b\r\r', [{ type: 'message', data: 'a' }]],
    [': comment\ndata: a\nother: x\n\n', [{ type: 'message', data: 'a' }]],
    ['\u{feff}data: a\n\n', [{ type: 'message', data: 'a' }]],
    ['id: 1\n\n', []],
    ['data\n\n', []],
    ['data: a\n', []],
  ])('%j has the events %j', (text, events) => {
    expect(read(text).events).toEqual(events);
  });

  it('reports the last event id and the retry delay', () => {
    expect(read('id: 7\nretry: 50\ndata: a\n\nid: x\0\nretry: soon\n\n').state).toEqual({
      lastEventId: '7',
      retryMs: 50,
    });
  });

  it('is parsed equally in any pieces', () => {
    const text = 'data: häß\r\n\r\nid: 1\ndata: a\rdata: b\n\nevent: e\ndata: 日\r\n\n';
    const whole = new EventStreamReader(1_000).push(bytes(text));
    expect(whole).toHaveLength(3);
    fc.assert(
      fc.property(fc.array(fc.nat(bytes(text).length), { maxLength: 8 }), (cuts) => {
        const reader = new EventStreamReader(1_000);
        const ends = [0, ...cuts.toSorted((a, b) => a - b), bytes(text).length];
        const pieces = ends.slice(1).map((end, at) => bytes(text).slice(ends[at], end));
        expect(pieces.flatMap((piece) => reader.push(piece))).toEqual(whole);
      }),
    );
  });

  it.each([`data: ${'x'.repeat(1_001)}`, 'data: xxxxxxxxxx\n'.repeat(101)])(
    'that never ends its event is an error',
    (text) => {
      expect(() => read(text)).toThrow('too long');
    },
  );
});
