import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { FailingFiles } from '../testing/failing_files.ts';
import { idOf } from '../testing/scripted_channel.ts';
import { Spool } from './spool.ts';

const DIRECTORY = '/spool';

let files: FailingFiles;

beforeEach(() => {
  files = new FailingFiles();
});

function open(options: { maxSpoolBytes?: number; segmentBytes?: number } = {}): Spool {
  return new Spool({ directory: DIRECTORY, maxSpoolBytes: 100_000, segmentBytes: 300, files, ...options });
}

/** A whole event, about 60 bytes long. */
function line(name: string | number, padding = 0): string {
  return `${JSON.stringify({ id: `evt_${name}`, data: { pad: 'é'.repeat(padding) } })}\n`;
}

function nameIn(text: string): string {
  return idOf(text).slice(4);
}

/** Settles everything, and returns the names in order. */
function drain(spool: Spool, maxEvents = 3): string[] {
  const names: string[] = [];
  for (let batch = spool.nextBatch(maxEvents, 200); batch !== null; batch = spool.nextBatch(maxEvents, 200)) {
    names.push(...batch.lines.map(nameIn));
    batch.settle();
  }
  return names;
}

function bytesOnDisk(): number {
  return [...files.contents.values()].reduce((sum, content) => sum + content.length, 0);
}

describe('a spool', () => {
  it('has written an event to the file system when append returns', () => {
    open().append([line('a')]);
    expect(Buffer.concat([...files.contents.values()]).toString()).toBe(line('a'));
  });

  it('returns events oldest first, over any number of files, and leaves nothing behind', () => {
    const spool = open();
    for (let n = 0; n < 40; n += 1) spool.append([line(n)]);
    expect(files.contents.size).toBeGreaterThan(3);
    expect(drain(spool)).toEqual(Array.from({ length: 40 }, (_, n) => String(n)));
    expect([spool.bytes, spool.events, bytesOnDisk(), files.contents.size]).toEqual([0, 0, 0, 1]);
  });

  it('closes each file once, and writes later events to a new file', () => {
    const spool = open();
    spool.append([line('a')]);
    const closed: number[] = [];
    files.close = (file: number): void => {
      closed.push(file);
    };
    spool.close();
    spool.close();
    spool.append([line('late')]);
    expect(closed).toHaveLength(1);
    expect([...files.contents.values()].map((content) => content.toString())).toEqual([line('a'), line('late')]);
  });

  it('returns a batch again until it is settled', () => {
    const spool = open();
    spool.append([line('a')]);
    expect(spool.nextBatch(5, 200)?.lines).toEqual(spool.nextBatch(5, 200)?.lines);
    expect(spool.events).toBe(1);
  });

  it('returns an event that is larger than a batch', () => {
    const spool = open({ segmentBytes: 10_000 });
    spool.append([line('big', 2_000)]);
    spool.append([line('small')]);
    expect(drain(spool)).toEqual(['big', 'small']);
  });

  it('accepts events while a batch is pending, and does not settle them with it', () => {
    const spool = open();
    spool.append([line('a')]);
    const batch = spool.nextBatch(5, 200);
    spool.append([line('b')]);
    batch?.settle();
    expect(drain(spool)).toEqual(['b']);
  });

  it('continues with what an earlier run left, and does not write to its files', () => {
    open().append([line('a')]);
    const spool = open();
    expect([spool.events, spool.appended]).toEqual([1, 1]);
    spool.append([line('b')]);
    expect(files.contents.size).toBe(2);
    expect(drain(spool)).toEqual(['a', 'b']);
  });

  it('leaves other files in its directory alone', () => {
    files.contents.set(`${DIRECTORY}/rejected.jsonl`, Buffer.from('kept\n'));
    expect(drain(open())).toEqual([]);
    expect(files.contents.get(`${DIRECTORY}/rejected.jsonl`)?.toString()).toBe('kept\n');
  });

  it('loses no whole event in a crash after any byte', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(30), { minLength: 1, maxLength: 6 }), fc.nat(), (paddings, cut) => {
        const text = Buffer.from(paddings.map((padding, n) => line(n, padding)).join(''));
        const kept = text.subarray(0, cut % (text.length + 1));
        files.contents.clear();
        files.contents.set(`${DIRECTORY}/000000000007.jsonl`, kept);
        const ends = paddings.map((_, n) =>
          Buffer.byteLength(
            paddings
              .slice(0, n + 1)
              .map((p, i) => line(i, p))
              .join(''),
          ),
        );
        const whole = ends.filter((end) => end - 1 <= kept.length).length;
        const spool = open();
        spool.append([line('new')]);
        expect(drain(spool)).toEqual([...Array.from({ length: whole }, (_, n) => String(n)), 'new']);
      }),
      { numRuns: 300 },
    );
  });

  it('keeps the order and every event for any mix of appending, settling, full disks and restarts', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('append' as const), padding: fc.nat(40) }),
      fc.record({ kind: fc.constantFrom('settle' as const, 'full' as const, 'space' as const, 'held' as const) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        files = new FailingFiles();
        const spool = open();
        const expected: string[] = [];
        const out: string[] = [];
        for (const one of steps) {
          if (one.kind === 'append') {
            spool.append([line(expected.length, one.padding)]);
            expected.push(String(expected.length));
          } else if (one.kind === 'full') files.room = 20;
          else if (one.kind === 'space') files.room = null;
          else if (one.kind === 'held') spool.writeHeld();
          else {
            const batch = spool.nextBatch(2, 200);
            out.push(...(batch?.lines ?? []).map(nameIn));
            batch?.settle();
          }
          expect(spool.events).toBe(expected.length - out.length);
        }
        expect([...out, ...drain(spool)]).toEqual(expected);
        expect(spool.dropped).toBe(0);
      }),
      { numRuns: 300 },
    );
  });
});

describe('a spool that is full', () => {
  it('refuses at its limit, accepts events in its reserve, and recovers when they are settled', () => {
    const spool = open({ maxSpoolBytes: 1_000 });
    while (spool.accepting) spool.append([line('x')]);
    expect(spool.bytes).toBeGreaterThanOrEqual(1_000);
    const before = spool.events;
    spool.append([line('reserve')]);
    expect([spool.events, spool.dropped]).toEqual([before + 1, 0]);
    const batch = spool.nextBatch(10, 600);
    batch?.settle();
    expect(spool.accepting).toBe(true);
  });

  it('reports that it is exhausted before it loses anything, and counts its losses', () => {
    const spool = open({ maxSpoolBytes: 1_000 });
    while (!spool.exhausted) spool.append([line('x')]);
    expect(spool.dropped).toBe(0);
    for (let n = 0; n < 100; n += 1) spool.append([line('y')]);
    expect(spool.dropped).toBeGreaterThan(0);
    expect(drain(spool).length + spool.dropped).toBe(spool.events + spool.settled + spool.dropped);
  });
});

describe.each(['ENOSPC', 'EIO'])('a disk that fails with %s', (code) => {
  it('makes the spool refuse, loses nothing, and recovers by itself', () => {
    const spool = open();
    spool.append([line('a')]);
    files.failing = code;
    spool.append([line('b')]);
    spool.append([line('c')]);
    expect([spool.accepting, spool.events]).toEqual([false, 3]);
    files.failing = null;
    spool.writeHeld();
    expect(spool.accepting).toBe(true);
    expect(drain(spool)).toEqual(['a', 'b', 'c']);
  });
});

describe('a disk that writes part of a line', () => {
  it('leaves only whole lines', () => {
    const spool = open();
    spool.append([line('a')]);
    files.room = 10;
    spool.append([line('b')]);
    expect(spool.accepting).toBe(false);
    expect(Buffer.concat([...files.contents.values()]).toString()).toBe(line('a'));
    files.room = null;
    spool.append([line('c')]);
    expect(drain(spool)).toEqual(['a', 'b', 'c']);
  });

  it('gets a new file if the part cannot be removed', () => {
    const spool = open();
    spool.append([line('a')]);
    files.room = 10;
    files.truncate = () => {
      throw new Error('no');
    };
    spool.append([line('b')]);
    files.room = null;
    spool.append([line('c')]);
    expect(files.contents.size).toBe(2);
    expect(drain(spool)).toEqual(['a', 'b', 'c']);
  });

  it('does not delay sending events that are only in memory', () => {
    const spool = open();
    files.failing = 'ENOSPC';
    spool.append([line('a')]);
    expect(drain(spool)).toEqual(['a']);
    expect([spool.accepting, spool.bytes]).toEqual([true, 0]);
  });
});
