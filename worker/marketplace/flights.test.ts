import { expect, test } from 'vitest';
import type { Clock } from '../kernel/clock.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import { Flights } from './flights.ts';

/** A clock that stands still until a test moves it. */
class StandingClock implements Clock {
  #now = Date.parse('2026-01-02T03:04:05.678Z');
  readonly #sleepers: { readonly until: number; readonly wake: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  sleep(milliseconds: number): Promise<void> {
    return new Promise((wake) => this.#sleepers.push({ until: this.#now + milliseconds, wake }));
  }

  move(milliseconds: number): void {
    this.#now += milliseconds;
    for (const { until, wake } of this.#sleepers) if (until <= this.#now) wake();
  }

  /** Moves in small steps until it is done; after each step everything that can go on does. */
  async moveUntilDone<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const finish = (): void => void (state.isDone = true);
    work.then(finish, finish);
    while (!state.isDone) {
      this.move(10);
      await new Promise(setImmediate);
    }
    return work;
  }
}

const clock = new StandingClock();
const lifetime = new ProgramLifetime(() => undefined);
const context = { clock, defer: lifetime.defer };

/** A value that many callers want, and how often it was fetched. */
function sharedValue(fetchMs: number) {
  const state = { value: null as string | null, fetches: 0 };
  const work = async () => {
    state.fetches += 1;
    await clock.sleep(fetchMs);
    state.value = 'there';
  };
  return { state, flight: { key: 'k', patienceMs: 5_000, look: () => state.value, work } };
}

test('concurrent callers start one flight, and all get its result', async () => {
  const { state, flight } = sharedValue(200);
  const flights = new Flights();
  const got = await clock.moveUntilDone(Promise.all(Array.from({ length: 50 }, () => flights.join(context, flight))));
  expect([new Set(got), state.fetches]).toEqual([new Set(['there']), 1]);
});

test('a caller that stops waiting gets nothing, and the flight continues for the others', async () => {
  const { state, flight } = sharedValue(1_000);
  const flights = new Flights();
  const hasty = flights.join(context, { ...flight, patienceMs: 100 });
  const patient = flights.join(context, flight);
  expect([...(await clock.moveUntilDone(Promise.all([hasty, patient]))), state.fetches]).toEqual([null, 'there', 1]);
});

test('a flight whose request is gone is started again', async () => {
  const { state, flight } = sharedValue(10);
  const flights = new Flights();
  const lost = flights.join(context, { ...flight, patienceMs: 50, work: () => new Promise<void>(() => undefined) });
  expect(await clock.moveUntilDone(lost)).toBeNull();
  clock.move(60_000);
  expect([await clock.moveUntilDone(flights.join(context, flight)), state.fetches]).toEqual(['there', 1]);
});

test('flights of different keys do not wait for each other', async () => {
  const [slow, quick] = [sharedValue(3_000), sharedValue(10)];
  const flights = new Flights();
  const first = flights.join(context, slow.flight);
  const began = clock.now();
  await clock.moveUntilDone(flights.join(context, { ...quick.flight, key: 'other' }));
  expect(clock.now() - began).toBeLessThan(2_500);
  await clock.moveUntilDone(first);
});
