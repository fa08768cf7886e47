import { z } from 'zod';
import { parseJson } from '../model/json.ts';
import { err, ok, type Result } from '../model/result.ts';
import { Secret } from '../model/secret.ts';
import { secretValue } from '../wire/secrets.ts';
import type { BorrowedForm } from './borrow_grant.ts';

/** What a program gave. */
export interface BorrowedValue {
  readonly secret: Secret;
  /** Of a key set: the rest of it. */
  readonly signedAs?: { readonly accessKeyId: string; readonly sessionToken: Secret };
  /** Milliseconds since the epoch; null if the program states none. */
  readonly expiresAtMs: number | null;
}

/** A number below this is a length in seconds, as `expires_in` (RFC 6749 section 5.1); others are times since the epoch. */
const FIRST_TIME_SECONDS = 1_000_000_000;
/** From here on, a time is in milliseconds. */
const FIRST_TIME_MS = 100_000_000_000;

/**
 * Reads the value from a program's output. `askedAtMs`: when the program was started, from which a length of time counts. The
 * problem is a predicate for "its output", and has nothing of the output in it.
 */
export function readBorrowed(form: BorrowedForm, output: string, askedAtMs: number): Result<BorrowedValue, string> {
  if (form.form === 'text') return readText(output);
  const json = parseJson(output);
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return err('is not a JSON object');
  if (form.form === 'aws') return readKeySet(json, askedAtMs);
  const value = fieldOf(json, form.value);
  if (typeof value !== 'string') return err(`has no text in the field ${form.value}`);
  const secret = toSecret(value);
  if (!secret.ok || form.expires === undefined)
    return secret.ok ? ok({ secret: secret.value, expiresAtMs: null }) : secret;
  const expiresAtMs = toTime(fieldOf(json, form.expires), askedAtMs);
  if (expiresAtMs === null) return err(`has no time in the field ${form.expires}`);
  return ok({ secret: secret.value, expiresAtMs });
}

function readText(output: string): Result<BorrowedValue, string> {
  const secret = toSecret(output.replace(/(?:\r?\n)+$/, ''));
  return secret.ok ? ok({ secret: secret.value, expiresAtMs: null }) : secret;
}

function toSecret(text: string): Result<Secret, string> {
  if (text === '') return err('is empty');
  if (/[\r\n]/.test(text)) return err('has several lines');
  if (/\p{Cc}/u.test(text) || !secretValue.safeParse(text).success) return err('has characters that no credential has');
  return ok(new Secret(text));
}

const keySet = z.object({
  Version: z.literal(1),
  AccessKeyId: z.string().regex(/^[A-Z0-9]{16,128}$/),
  SecretAccessKey: z.string(),
  SessionToken: z.string(),
  Expiration: z.string().optional(),
});

/** https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html */
function readKeySet(json: object, askedAtMs: number): Result<BorrowedValue, string> {
  const parsed = keySet.safeParse(json);
  if (!parsed.success) {
    return err(`has no ${parsed.error.issues[0]?.path.join('.') ?? 'field'} as credential_process writes it`);
  }
  const { AccessKeyId: accessKeyId, Expiration: expiration } = parsed.data;
  const secret = toSecret(parsed.data.SecretAccessKey);
  if (!secret.ok) return secret;
  const token = toSecret(parsed.data.SessionToken);
  if (!token.ok) return token;
  const expiresAtMs = expiration === undefined ? null : toTime(expiration, askedAtMs);
  if (expiration !== undefined && expiresAtMs === null) return err('has no time in the field Expiration');
  return ok({ secret: secret.value, signedAs: { accessKeyId, sessionToken: token.value }, expiresAtMs });
}

function fieldOf(json: unknown, path: string): unknown {
  let value = json;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Object.entries(value).find(([key]) => key === name)?.[1];
  }
  return value;
}

/** A time of RFC 3339, or a number. A time without a zone is refused: nobody can say which one it means. */
function toTime(value: unknown, askedAtMs: number): number | null {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number === 'number')
    return Number.isFinite(number) && number >= 0 ? numberToTime(number, askedAtMs) : null;
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d[Tt ].*(?:[Zz]|[+-]\d\d:?\d\d)$/.test(value)) return null;
  const time = Date.parse(value);
  return Number.isNaN(time) ? null : time;
}

function numberToTime(number: number, askedAtMs: number): number {
  if (number < FIRST_TIME_SECONDS) return askedAtMs + number * 1000;
  return number < FIRST_TIME_MS ? number * 1000 : number;
}
