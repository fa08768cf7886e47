import { parseJson, parseJsonBytes } from '../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { secretValue } from '../../../shared/wire/secrets.ts';
import { UNTOLD_SECONDS } from '../../../shared/wire/sources/source_descriptor.ts';
import type { Outbound } from '../../kernel/outbound.ts';
import type { Minted, MintFailure, MintPlan } from './source_port.ts';

const LIMITS = { maxReplyBytes: 2 * 1024 * 1024, timeoutMs: 12_000 };

/** What to change, by status code or by the code of an error. */
export type Advice = Readonly<Record<string, string>>;

export interface ManagerCall {
  readonly outbound: Outbound;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Present: it is posted. */
  readonly json?: object;
  /** The same, as it was signed. */
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly why: Advice;
  /** The code of an error in a refusal, in place of its status code. */
  readonly codeOf?: (reply: unknown) => string | null;
}

/**
 * Calls the API of a secret manager, for the JSON of its answer. Redirects are not followed: the key would go to another host. Texts of
 * a refusal are not passed on, because they may say more than the person who uses the secret may see.
 */
export async function callManager(call: ManagerCall): Promise<Result<unknown, MintFailure>> {
  const { outbound, url, json, why } = call;
  const body = call.body ?? (json === undefined ? null : new TextEncoder().encode(JSON.stringify(json)));
  const headers = {
    accept: 'application/json',
    'user-agent': 'svc',
    ...(json !== undefined && { 'content-type': 'application/json' }),
    ...call.headers,
  };
  const called = await outbound.call({
    method: body === null ? 'GET' : 'POST',
    url,
    anyPort: true,
    headers,
    body,
    limits: LIMITS,
  });
  if (!called.ok) return failed(called.error.message);
  const { status, body: bytes } = called.value;
  const reply = parseJsonBytes(bytes);
  const { host } = new URL(url);
  if (status === 200) return ok(reply);
  const code =
    call
      .codeOf?.(reply)
      ?.replaceAll(/[^\w.]/g, '')
      .slice(0, 64) ?? '';
  const known = [code, String(status)].find((each) => Object.hasOwn(why, each));
  const named = code === '' ? '' : `, ${code}`;
  return failed(`${host} answered with status ${status}${named}${known === undefined ? '' : `: ${why[known]}`}`);
}

interface Kept {
  /** What keeps it, for people. */
  readonly where: string;
  readonly nowMs: number;
  /** Of a value that is a JSON object; absent: the whole value. */
  readonly field?: string | undefined;
}

/** A value that a manager keeps states no end: it is read again after {@link UNTOLD_SECONDS}, counted from before the first call. */
export function keptValue(text: unknown, { where, nowMs, field }: Kept): Result<Minted, MintFailure> {
  const value = field === undefined ? text : fieldOf(text, field);
  const what = field === undefined ? `the value of ${where}` : `the field ${field} of ${where}`;
  if (value === undefined) return failed(`${what} is not there: compare field, and whether the value is a JSON object`);
  if (typeof value !== 'string') return failed(`${what} is not a text: store it there as one`);
  const { error } = secretValue.safeParse(value);
  if (error !== undefined) return failed(`${what} ${error.issues[0]?.message ?? 'cannot be used'}`);
  return ok({ value: new Secret(value), expiresAtMs: nowMs + UNTOLD_SECONDS * 1000 });
}

function fieldOf(text: unknown, field: string): unknown {
  const object: unknown = typeof text === 'string' ? parseJson(text) : undefined;
  if (typeof object !== 'object' || object === null || Array.isArray(object)) return undefined;
  // Names are those of a stranger: never looked up on an object, which has names of its own.
  return new Map(Object.entries<unknown>({ ...object })).get(field);
}

export function keptPlan(identity: string, what: string, providerUrl: string): MintPlan {
  return { identity, scope: [what], audience: null, providerUrl };
}

/** A token that is sent in a header. */
export function tokenProblem(key: Secret, what: string): MintFailure | null {
  if (/^[\x21-\x7e]{1,8192}$/.test(key.reveal())) return null;
  return { reason: 'invalid_key', message: `it is no ${what}: give it alone, as the service shows it, without spaces` };
}

export function notAnAnswer(url: string): Result<never, MintFailure> {
  return failed(`the answer of ${new URL(url).host} is not that of this service: compare the address`);
}

export function anotherSecret(url: string): Result<never, MintFailure> {
  return failed(`${new URL(url).host} answered with another secret or version than was asked for, which was discarded`);
}

export function failed(message: string): Result<never, MintFailure> {
  return err({ reason: 'failed', message });
}

export function withoutSlash(url: string): string {
  return url.replace(/\/$/, '');
}
