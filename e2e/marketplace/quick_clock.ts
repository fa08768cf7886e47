import { setTimeout as wait } from 'node:timers/promises';
import type { Clock } from '../../worker/kernel/clock.ts';

const SPEED = 20;

/** A clock that runs twenty times as fast, and that a test can advance, so that waiting takes almost no time. */
export class QuickClock implements Clock {
  readonly #began = performance.now();
  readonly #from: number;
  #moved = 0;

  constructor(from = Date.parse('2026-01-02T03:04:05.678Z')) {
    this.#from = from;
  }

  now(): number {
    return Math.floor(this.#from + this.#moved + (performance.now() - this.#began) * SPEED);
  }

  move(milliseconds: number): void {
    this.#moved += milliseconds;
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    await wait(milliseconds / SPEED, undefined, { signal }).catch(() => undefined);
  }
}
