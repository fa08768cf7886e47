import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

const UNITS: readonly (readonly [seconds: number, word: string])[] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
];

/** The time since or until, in a few characters. */
export function relativeTime(time: string, nowMs: number): string {
  const seconds = Math.round((nowMs - Date.parse(time)) / 1000);
  const size = Math.abs(seconds);
  if (size < 5) return 'now';
  const [unit, word] = UNITS.find(([least]) => size >= least) ?? [1, 's'];
  const amount = `${Math.floor(size / unit)} ${word}`;
  return seconds >= 0 ? `${amount} ago` : `in ${amount}`;
}

/** `2026-01-02 03:04:05 UTC`. */
export function exactTime(time: string): string {
  return `${time.slice(0, 19).replace('T', ' ')} UTC`;
}

/** A relative time, with the exact time as its title. */
export function timeAgo(time: string, nowMs: number): Html {
  const exact = exactTime(time);
  return html`<time class="nowrap" datetime="${time}" title="${exact}">${relativeTime(time, nowMs)}</time>`;
}
