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

/** Which characters of an RFC 3339 time are written, and whether its zone is. */
const PARTS = {
  second: '0 19 zone',
  clock: '11 19',
  minute: '11 16',
  'day and clock': '5 19',
  'day and minute': '5 16',
} as const;

/** A time as it is written, in UTC; by the switch of islands/local_times.js in the time of the reader's machine. */
export function writtenTime(time: string, part: keyof typeof PARTS = 'second'): Html {
  const [from, to, zone] = PARTS[part].split(' ');
  const words = time.slice(Number(from), Number(to)).replace('T', ' ');
  const text = zone === undefined ? words : exactTime(time);
  return html`<time datetime="${time}" data-written="${PARTS[part]}">${text}</time>`;
}

/** A relative time, with the exact time as its title. */
export function timeAgo(time: string, nowMs: number): Html {
  const exact = exactTime(time);
  return html`<time class="nowrap" datetime="${time}" title="${exact}">${relativeTime(time, nowMs)}</time>`;
}
