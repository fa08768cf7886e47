import { MAX_SESSION_SECONDS } from '../../shared/model/session_length.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Formats an RFC 3339 time relative to `now`: `3m ago`. */
export function agoText(time: string, now: number): string {
  const passed = Math.max(0, now - Date.parse(time));
  const [unit, size] = Object.entries(UNITS_MS).findLast(([, ms]) => passed >= ms) ?? ['s', 1_000];
  return `${Math.floor(passed / size)}${unit} ago`;
}

/** Parses a time: RFC 3339, or `10m`, `2h`, `7d` for that long ago. Returns RFC 3339. */
export function parseTime(text: string, now: number): Result<string, string> {
  const ago = /^(\d{1,6})([smhd])$/.exec(text);
  const size = UNITS_MS[ago?.[2] ?? ''];
  const at = ago && size !== undefined ? now - Number(ago[1]) * size : Date.parse(text);
  const wellFormed = ago !== null || /^\d{4}-\d{2}-\d{2}(T|$)/.test(text);
  if (wellFormed && Number.isFinite(at) && at > 0) return ok(new Date(at).toISOString());
  return err(`is ${JSON.stringify(text)}: use a time such as 2026-01-31T09:00:00Z, or 10m, 2h, 7d for that long ago`);
}

/** Parses a duration such as `90s`, `15m`, `8h` or `2d`. Returns seconds. */
export function parseDuration(text: string): Result<number, string> {
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  const size = UNITS_MS[match?.[2] ?? ''];
  const seconds = match && size !== undefined ? (Number(match[1]) * size) / 1_000 : 0;
  return seconds > 0 ? ok(seconds) : err(`is ${JSON.stringify(text)}: use a length such as 90s, 15m, 8h or 2d`);
}

/** The seconds of `--ttl`. */
export function parseSessionLength(text: string): Result<number, string> {
  const parsed = parseDuration(text);
  if (!parsed.ok || parsed.value <= MAX_SESSION_SECONDS) return parsed;
  return err(`is ${JSON.stringify(text)}: a session may last 30d at most`);
}
