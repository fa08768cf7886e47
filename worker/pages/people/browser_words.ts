import { foreignText } from '../components/foreign_text.ts';
import type { Html } from '../frame/html.ts';

/** In the order in which they are looked for: most browsers also carry the names of others. */
const BROWSERS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/\b(?:Headless)?Chrome\/|\bCriOS\//, 'Chrome'],
  [/\bVersion\/.* Safari\//, 'Safari'],
];
const SYSTEMS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows NT\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];

/** The browser and the system that a User-Agent header (RFC 9110, 10.1.5) names, such as "Firefox on Linux"; null if it names none. */
export function browserWords(userAgent: string): string | null {
  const browser = nameIn(BROWSERS, userAgent);
  const system = nameIn(SYSTEMS, userAgent);
  if (browser === null) return null;
  return system === null ? browser : `${browser} on ${system}`;
}

function nameIn(names: readonly (readonly [pattern: RegExp, name: string])[], text: string): string | null {
  return names.find(([pattern]) => pattern.test(text))?.[1] ?? null;
}

/** What a browser or a program called itself: `none` if it did not. */
export function clientWords(client: string, none: string): Html | string {
  return client === '' ? none : (browserWords(client) ?? foreignText(client));
}
