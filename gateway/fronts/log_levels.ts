import type { LoggingLevel } from '@modelcontextprotocol/server';

/** From the least severe to the most severe (RFC 5424 section 6.2.1). */
const LEVELS: readonly LoggingLevel[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
];

/** Whether a message of `level` is sent to a client that wants messages from `least` on; null wants none. */
export function isLogged(level: LoggingLevel, least: LoggingLevel | null): boolean {
  return least !== null && LEVELS.indexOf(level) >= LEVELS.indexOf(least);
}

/** The lowest of the levels; null if there is none. */
export function findLeast(levels: readonly (LoggingLevel | null)[]): LoggingLevel | null {
  return LEVELS.find((level) => levels.includes(level)) ?? null;
}
