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
  const counts = new RequestCounts(new FakeClock());
  for (let n = 0; n < 1000; n += 1) expect(counts.take(BINDING)).toBeNull();
  expect(counts.save()).toBe('{"version":1,"days":{}}');
});

test('the limit of a minute refuses the next request, and says when there is room', () => {
  const clock = new FakeClock();
  const counts = new RequestCounts(clock);
  const limited = { ...BINDING, requestsPerMinute: 2 };
  expect([counts.take(limited), counts.take(limited)]).toEqual([null, null]);
  const refused = counts.take(limited);
  expect(refused).toMatchObject({
    reason: 'request_limit_reached',
    message: expect.stringMatching(/^the binding of api\.example\.test allows 2 requests a minute on this machine/),
    retryAfterSeconds: expect.toSatisfy((seconds: number) => seconds > 0 && seconds <= 61),
  });
  clock.advance((refused?.retryAfterSeconds ?? 0) * 1000);
  expect(counts.take(limited)).toBeNull();
});

test('what is refused counts neither for the minute nor for the day', () => {
  const clock = new FakeClock();
  const counts = new RequestCounts(clock);
  const limited = { ...BINDING, requestsPerMinute: 1, requestsPerDay: 3 };
  for (let n = 0; n < 50; n += 1) counts.take(limited);
  for (let minute = 0; minute < 2; minute += 1) {
    clock.advance(2 * MINUTE_MS);
    expect(counts.take(limited)).toBeNull();
  }
  clock.advance(2 * MINUTE_MS);
  expect(counts.take(limited)?.message).toContain('3 requests a day');
});

test('bindings have counts of their own, and a changed limit keeps the count', () => {
  const counts = new RequestCounts(new FakeClock());
  expect(counts.take({ ...BINDING, requestsPerDay: 1 })).toBeNull();
  expect(counts.take({ ...BINDING, id: 'bnd_2', requestsPerDay: 1 })).toBeNull();
  expect(counts.take({ ...BINDING, requestsPerDay: 1 })).not.toBeNull();
  expect(counts.take({ ...BINDING, requestsPerDay: 2 })).toBeNull();
  expect(counts.take({ ...BINDING, requestsPerDay: 2 })).not.toBeNull();
});

describe('the file', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-counts-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  const open = (name: string, clock: FakeClock, warnings: string[] = []) =>
    openRequestCounts({ path: join(folder, name), clock, warn: (message) => warnings.push(message) });

  test('keeps the count of the day over a restart, for its owner alone', async () => {
    const clock = new FakeClock();
    const limited = { ...BINDING, requestsPerDay: 2 };
    const first = open('kept.json', clock);
    first.counts.take(limited);
    first.counts.take(limited);
    await first.flush();
    expect(statSync(join(folder, 'kept.json')).mode & 0o777).toBe(0o600);
    clock.advance(12 * HOUR_MS);
    expect(open('kept.json', clock).counts.take(limited)?.reason).toBe('request_limit_reached');
    clock.advance(12 * HOUR_MS + 2 * MINUTE_MS);
    expect(open('kept.json', clock).counts.take(limited)).toBeNull();
  });

  test('is not written for limits of a minute', async () => {
    const { counts, flush } = open('none.json', new FakeClock());
    counts.take({ ...BINDING, requestsPerMinute: 5 });
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
    expect(open(name, new FakeClock(), warnings).counts.take({ ...BINDING, requestsPerDay: 1 })).toBeNull();
    expect(warnings).toEqual([expect.stringContaining(problem)]);
  });

  test('that cannot be written is named', async () => {
    const warnings: string[] = [];
    const { counts, flush } = open('no\0file', new FakeClock(), warnings);
    counts.take({ ...BINDING, requestsPerDay: 1 });
    await flush();
    expect(warnings.at(-1)).toContain('cannot be written');
  });
});
