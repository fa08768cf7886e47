// The words of times that pass while a page is shown: the same as those of the server (pages/components/time.ts).

/** @type {readonly (readonly [seconds: number, word: string])[]} */
const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
];

/**
 * @param {string} time RFC 3339
 * @param {number} nowMs
 */
export function relativeTime(time, nowMs) {
  const seconds = Math.round((nowMs - Date.parse(time)) / 1000);
  const size = Math.abs(seconds);
  if (size < 5) return 'now';
  const [unit, word] = UNITS.find(([least]) => size >= least) ?? [1, 's'];
  const amount = `${Math.floor(size / unit)} ${word}`;
  return seconds >= 0 ? `${amount} ago` : `in ${amount}`;
}

/**
 * Brings the relative times of a part of the page up to date.
 * @param {ParentNode} root
 */
export function refreshTimes(root) {
  for (const time of root.querySelectorAll('time[datetime]:not([data-written])')) {
    const words = relativeTime(time.getAttribute('datetime') ?? '', Date.now());
    if (time.textContent !== words) time.textContent = words;
  }
}
