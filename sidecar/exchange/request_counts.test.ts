import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeClock } from '../testing/fakes.ts';
import { RequestCounts } from './request_counts.ts';
import { openRequestCounts } from './request_counts_file.ts';

const BINDING = { id: 'bnd_1', host: 'api.example.test' };
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

test('a binding without a limit is not counted', () => {
  const counts = new RequestCounts({ clock: new FakeClock() });
  for (let n = 0; n < 1000; n += 1) expect(counts.take(BINDING, null)).toBeNull();
  expect(counts.save()).toBe('{"version":1,"days":{}}');
});

test('the limit of a minute refuses the next request, and says when there is room', () => {
  const clock = new FakeClock();
  const counts = new RequestCounts({ clock });
  const limited = { ...BINDING, requestsPerMinute: 2 };
  expect([counts.take(limited, null), counts.take(limited, null)]).toEqual([null, null]);
  const refused = counts.take(limited, null);
  expect(refused).toMatchObject({
    reason: 'request_limit_reached',
    message: expect.stringMatching(/^the binding of api\.example\.test allows 2 requests a minute on this machine/),
    retryAfterSeconds: expect.toSatisfy((seconds: number) => seconds > 0 && seconds <= 61),
  });
  clock.advance((refused?.retryAfterSeconds ?? 0) * 1000);
  expect(counts.take(limited, null)).toBeNull();
});

test('what is refused counts neither for the minute nor for the day', () => {
  const clock = new FakeClock();
  const counts = new RequestCounts({ clock });
  const limited = { ...BINDING, requestsPerMinute: 1, requestsPerDay: 3 };
  for (let n = 0; n < 50; n += 1) counts.take(limited, null);
  for (let minute = 0; minute < 2; minute += 1) {
    clock.advance(2 * MINUTE_MS);
    expect(counts.take(limited, null)).toBeNull();
  }
  clock.advance(2 * MINUTE_MS);
  expect(counts.take(limited, null)?.message).toContain('3 requests a day');
});

test('bindings have counts of their own, and a changed limit keeps the count', () => {
  const counts = new RequestCounts({ clock: new FakeClock() });
  expect(counts.take({ ...BINDING, requestsPerDay: 1 }, null)).toBeNull();
  expect(counts.take({ ...BINDING, id: 'bnd_2', requestsPerDay: 1 }, null)).toBeNull();
  expect(counts.take({ ...BINDING, requestsPerDay: 1 }, null)).not.toBeNull();
  expect(counts.take({ ...BINDING, requestsPerDay: 2 }, null)).toBeNull();
  expect(counts.take({ ...BINDING, requestsPerDay: 2 }, null)).not.toBeNull();
});

describe('a session with limits', () => {
  const limits = { requestsPerMinute: 2, requestsPerDay: 3 };
  const make = (clock: FakeClock) =>
    new RequestCounts({ clock, limitsOfSession: (id) => (id === 'ses_limited' ? limits : null) });

  test('has them for all of its bindings together, and no other session has them', () => {
    const counts = make(new FakeClock());
    const other = { id: 'bnd_2', host: 'other.example.test' };
    expect([counts.take(BINDING, 'ses_limited'), counts.take(other, 'ses_limited')]).toEqual([null, null]);
    const refused = counts.take(BINDING, 'ses_limited');
    expect(refused?.reason).toBe('request_limit_reached');
    expect(refused?.message).toContain('this session allows 2 requests a minute on this machine');
    expect([counts.take(BINDING, 'ses_other'), counts.take(BINDING, null)]).toEqual([null, null]);
  });

  test('is counted for the day also over a restart', () => {
    const clock = new FakeClock();
    const counts = make(clock);
    for (let n = 0; n < 3; n += 1) {
      expect(counts.take(BINDING, 'ses_limited')).toBeNull();
      clock.advance(2 * MINUTE_MS);
    }
    const next = make(clock);
    expect(next.restore(counts.save())).toBe(true);
    expect(next.take(BINDING, 'ses_limited')?.message).toContain('3 requests a day');
    clock.advance(25 * HOUR_MS);
    expect(next.take(BINDING, 'ses_limited')).toBeNull();
  });

  test('what the binding refuses does not count for the session, and the reverse', () => {
    const clock = new FakeClock();
    const counts = make(clock);
    const full = { ...BINDING, requestsPerDay: 1 };
    expect(counts.take(full, null)).toBeNull();
    for (let n = 0; n < 5; n += 1) expect(counts.take(full, 'ses_limited')?.message).toContain('the binding of');
    const wide = { id: 'bnd_2', host: 'other.example.test', requestsPerDay: 3 };
    expect([counts.take(wide, 'ses_limited'), counts.take(wide, 'ses_limited')]).toEqual([null, null]);
    for (let n = 0; n < 5; n += 1) expect(counts.take(wide, 'ses_limited')?.message).toContain('this session');
    expect([counts.take(wide, null), counts.take(wide, null)?.reason]).toEqual([null, 'request_limit_reached']);
  });
});

test('asking whether there is room counts nothing', () => {
  const counts = new RequestCounts({ clock: new FakeClock() });
  const limited = { ...BINDING, requestsPerMinute: 1 };
  for (let n = 0; n < 5; n += 1) expect(counts.refuse(limited, null)).toBeNull();
  expect(counts.take(limited, null)).toBeNull();
  expect([counts.refuse(limited, null)?.reason, counts.take(limited, null)?.reason]).toEqual([
    'request_limit_reached',
    'request_limit_reached',
  ]);
});

describe('a limit of bytes', () => {
  test('refuses the next request once it is reached, until the bytes have left the day', () => {
    const clock = new FakeClock();
    const counts = new RequestCounts({ clock });
    const limited = { ...BINDING, bytesPerDay: 2_000_000 };
    expect(counts.take(limited, null)).toBeNull();
    const meter = counts.meter(limited, null);
    meter?.add(1_999_999);
    expect(counts.take(limited, null)).toBeNull();
    clock.advance(HOUR_MS);
    meter?.addAll([new Uint8Array(1), new Uint8Array(0), new Uint8Array(9)]);
    const refused = counts.take(limited, null);
    expect(refused).toMatchObject({
      reason: 'request_limit_reached',
      message: expect.stringMatching(
        /allows 2 MB a day on this machine, and the next request in \d+ s; .*svc binding limit/,
      ),
    });
    clock.advance((refused?.retryAfterSeconds ?? 0) * 1000 - 1001);
    expect(counts.take(limited, null)).not.toBeNull();
    clock.advance(1001);
    expect(counts.take(limited, null)).toBeNull();
  });

  test('counts nothing without one, and for a binding and its session where both have one', () => {
    const limits = { bytesPerDay: 100 };
    const limitsOfSession = (id: string) => (id === 'ses_limited' ? limits : { requestsPerDay: 5 });
    const counts = new RequestCounts({ clock: new FakeClock(), limitsOfSession });
    expect(counts.meter({ ...BINDING, requestsPerDay: 5 }, 'ses_other')).toBeNull();
    counts.meter({ ...BINDING, ...limits }, 'ses_limited')?.add(60);
    counts.meter(null, 'ses_limited')?.add(40);
    expect(counts.take({ ...BINDING, ...limits }, 'ses_other')).toBeNull();
    expect(counts.take(null, 'ses_limited')?.message).toContain('this session allows 100 bytes a day');
    counts.meter({ ...BINDING, ...limits }, 'ses_other')?.add(40);
    expect(counts.take({ ...BINDING, ...limits }, 'ses_other')?.message).toContain(`the binding of ${BINDING.host}`);
  });

  test('keeps the bytes of a stream that is longer than a day, whose request is long forgotten', () => {
    const clock = new FakeClock();
    const limits = { bytesPerDay: 100 };
    const counts = new RequestCounts({ clock, limitsOfSession: () => limits });
    counts.take(null, 'ses_1');
    const meter = counts.meter(null, 'ses_1');
    clock.advance(25 * HOUR_MS);
    meter?.add(100);
    // Makes room.
    counts.take(null, 'ses_2');
    expect(counts.take(null, 'ses_1')?.reason).toBe('request_limit_reached');
  });
});

test('what had no request for a day is forgotten, also if nothing is saved', () => {
  const clock = new FakeClock();
  const counts = new RequestCounts({ clock, limitsOfSession: () => ({ requestsPerMinute: 5 }) });
  for (let n = 0; n < 50; n += 1) counts.take(null, `ses_${n}`);
  expect(Object.keys(JSON.parse(counts.save()).days)).toHaveLength(50);
  clock.advance(25 * HOUR_MS);
  counts.take(null, 'ses_new');
  expect(Object.keys(JSON.parse(counts.save()).days)).toEqual(['ses_new']);
});

describe('the file', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-counts-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  const open = (name: string, clock: FakeClock, warnings: string[] = []) =>
    openRequestCounts({
      limitsOfSession: () => null,
      path: join(folder, name),
      clock,
      warn: (message) => warnings.push(message),
    });

  test('keeps the count of the day over a restart, for its owner alone', async () => {
    const clock = new FakeClock();
    const limited = { ...BINDING, requestsPerDay: 2 };
    const first = open('kept.json', clock);
    first.counts.take(limited, null);
    first.counts.take(limited, null);
    await first.flush();
    expect(statSync(join(folder, 'kept.json')).mode & 0o777).toBe(0o600);
    clock.advance(12 * HOUR_MS);
    expect(open('kept.json', clock).counts.take(limited, null)?.reason).toBe('request_limit_reached');
    clock.advance(12 * HOUR_MS + 2 * MINUTE_MS);
    expect(open('kept.json', clock).counts.take(limited, null)).toBeNull();
  });

  test('keeps the bytes of the day over a restart', async () => {
    const clock = new FakeClock();
    const limited = { ...BINDING, bytesPerDay: 100 };
    const first = open('bytes.json', clock);
    first.counts.take(limited, null);
    first.counts.meter(limited, null)?.add(100);
    await first.flush();
    expect(open('bytes.json', clock).counts.take(limited, null)?.reason).toBe('request_limit_reached');
    clock.advance(25 * HOUR_MS);
    expect(open('bytes.json', clock).counts.take(limited, null)).toBeNull();
  });

  test('is read where an earlier version wrote it', () => {
    const clock = new FakeClock();
    const minute = Math.floor(clock.now() / MINUTE_MS);
    const text = `{"version":1,"days":{"${BINDING.id}":[[${minute},3]]}}`;
    writeFileSync(join(folder, 'earlier.json'), text, { mode: 0o600 });
    const { counts } = open('earlier.json', clock);
    expect(counts.take({ ...BINDING, requestsPerDay: 3 }, null)?.reason).toBe('request_limit_reached');
    expect(counts.save()).toBe(text);
  });

  test('is not written for limits of a minute', async () => {
    const { counts, flush } = open('none.json', new FakeClock());
    counts.take({ ...BINDING, requestsPerMinute: 5 }, null);
    await flush();
    expect(() => readFileSync(join(folder, 'none.json'))).toThrow('ENOENT');
  });

  test.each([
    ['damaged', '{"version":1,"days":{"bnd_1":[[1,-5]]}}', 0o600, 'is damaged'],
    ['open to others', '{"version":1,"days":{}}', 0o644, 'chmod 600'],
  ])('that is %s is named, and the counts begin at zero', (what, text, mode, problem) => {
    const name = `${what}.json`;
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), mode);
    const warnings: string[] = [];
    expect(open(name, new FakeClock(), warnings).counts.take({ ...BINDING, requestsPerDay: 1 }, null)).toBeNull();
    expect(warnings).toEqual([expect.stringContaining(problem)]);
  });

  test('that cannot be written is named', async () => {
    const warnings: string[] = [];
    const { counts, flush } = open('no\0file', new FakeClock(), warnings);
    counts.take({ ...BINDING, requestsPerDay: 1 }, null);
    await flush();
    expect(warnings.at(-1)).toContain('cannot be written');
  });
});
