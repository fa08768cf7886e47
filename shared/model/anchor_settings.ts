import { err, ok, type Result } from './result.ts';
import type { Setting, SettingProblem } from './setting.ts';
import { isLoopbackHostname } from './loopback_hostname.ts';

/** Where and how often the control plane sends the signed heads of the audit log (docs/decisions/0052). */
export interface AnchorSettings {
  /** Receives the heads of one enterprise in a POST; null: nothing is posted. Only the host is ever shown. */
  readonly url: string | null;
  /** Whether each head is printed to the control plane's log. */
  readonly isLogged: boolean;
  /** The interval in hours, counted from midnight UTC of 1970-01-01. */
  readonly hours: number;
}

const URL_NAME = 'SVC_AUDIT_HEADS_URL';
const LOG_NAME = 'SVC_AUDIT_HEADS_LOG';
const HOURS_NAME = 'SVC_AUDIT_HEADS_HOURS';

const DAILY_HOURS = 24;
const MAX_HOURS = 168;

/** In the order of the table in docs/reference/settings.md. */
export const ANCHOR_SETTINGS: readonly Setting[] = [
  {
    name: URL_NAME,
    flag: null,
    default: 'none',
    meaning: 'https URL that each enterprise’s signed audit heads are posted to, as an anchor outside of the database',
    readBy: ['control'],
  },
  {
    name: LOG_NAME,
    flag: null,
    default: 'off',
    meaning: '`on`: the signed audit heads are printed to the log of the control plane',
    readBy: ['control'],
  },
  {
    name: HOURS_NAME,
    flag: null,
    default: `${DAILY_HOURS}: daily`,
    meaning: `hours between two sendings of the audit heads, 1 to ${MAX_HOURS}`,
    readBy: ['control'],
  },
];

type Read = <T>(name: string, parse: (text: string) => Result<T, string>) => T | undefined;

/** Null if the heads are sent nowhere. */
export function readAnchorSettings(read: Read): AnchorSettings | null {
  const url = read(URL_NAME, parseAnchorUrl) ?? null;
  const isLogged = read(LOG_NAME, parseSwitch) ?? false;
  const hours = read(HOURS_NAME, parseHours) ?? DAILY_HOURS;
  return url === null && !isLogged ? null : { url, isLogged, hours };
}

/** An interval without a destination would look as if heads were sent. */
export function anchorProblems(env: Readonly<Record<string, string | undefined>>): readonly SettingProblem[] {
  if (env[HOURS_NAME] === undefined || env[URL_NAME] !== undefined || env[LOG_NAME] !== undefined) return [];
  const message = `${HOURS_NAME} is set, and the heads are sent nowhere: set ${URL_NAME} or ${LOG_NAME} too`;
  return [{ name: HOURS_NAME, message }];
}

/** A webhook's path and query may be its password, so the value is never quoted. */
function parseAnchorUrl(text: string): Result<string, string> {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isBare = url?.username === '' && url.password === '' && url.hash === '';
  const isLoopback = url?.protocol === 'http:' && isLoopbackHostname(url.hostname);
  if (isBare && (isLoopback || (url.protocol === 'https:' && url.port === ''))) return ok(text);
  return err('is no https URL without a port, a user, a password or a fragment: use the one of the receiver');
}

function parseSwitch(text: string): Result<boolean, string> {
  return text === 'on' || text === 'off' ? ok(text === 'on') : err(`is ${JSON.stringify(text)}: use on or off`);
}

function parseHours(text: string): Result<number, string> {
  const hours = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (hours >= 1 && hours <= MAX_HOURS) return ok(hours);
  return err(`is ${JSON.stringify(text)}: use a whole number of hours from 1 to ${MAX_HOURS}`);
}
