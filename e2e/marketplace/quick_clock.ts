import { setTimeout as wait } from 'node:timers/promises';
import type { Clock } from '../../worker/kernel/clock.ts';

/** A pause between two calls; what is longer is a time limit. */
const PAUSE_MS = 1_000;
const SPEED = 20;

/** A clock that a test can advance. Pauses take almost no time, and time limits their whole time, because the machine may be slow. */
export class QuickClock implements Clock {
  readonly #began = performance.now();
  readonly #from: number;
  #moved = 0;

  constructor(from = Date.parse('2026-01-02T03:04:05.678Z')) {
    this.#from = from;
  }

  now(): number {
    return Math.floor(this.#from + this.#moved + performance.now() - this.#began);
  }

  move(milliseconds: number): void {
    this.#moved += milliseconds;
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    const realMs = milliseconds < PAUSE_MS ? milliseconds / SPEED : milliseconds;
    await wait(realMs, undefined, { signal }).catch(() => undefined);
  }
}
