import { err, ok, type Result } from '../model/result.ts';
import { Secret } from '../model/secret.ts';
import { escapeHidden, replaceHidden } from '../model/shown_text.ts';
import { type LoginAccount, MAX_TOKEN_CHARACTERS } from '../model/new_login.ts';
import { objectOf, placeholderIdToken, readIdToken, textOf } from './id_token.ts';
import { isRefreshPlaceholder, PLACEHOLDER_SECONDS, refreshPlaceholder } from './token_request.ts';
import { parseUniqueJson } from './unique_json.ts';

/** The tokens in a reply to a program's login, and what the program gets in their place. */
export interface LoginReply {
  readonly accessToken: Secret;
  /** Null: the login lasts as long as its access token. */
  readonly refreshToken: Secret | null;
  /** Seconds; null if the provider does not say. */
  readonly expiresIn: number | null;
  readonly account: LoginAccount;
  /** The same reply with placeholders, in the format in which it came. */
  readonly reply: string;
}

/** How a reply is written: JSON (RFC 6749 section 5.1), or a form, as GitHub writes it unless it is asked for JSON. */
export type ReplyType = 'json' | 'form';
export const FORM_TYPE = 'form' satisfies ReplyType;

/** A shorter text is no token, and could be anywhere in a reply. */
const LEAST_TOKEN_CHARACTERS = 16;
const MOST_TEXT_CHARACTERS = 300;
const TOKEN_NAME = /^(?:access|refresh|id)[-_]?token$/i;
const MAY_MAKE_KEYS = 'org:create_api_key';

/**
 * How long the program's placeholders seem to be valid at first. A program that finds them expired asks for new ones, and then
 * also for what it could not learn about its account during the login, when nothing uses the tokens yet.
 */
export const FIRST_SECONDS = 60;

/**
 * Reads the reply to the request for the tokens of a login (RFC 6749 section 5.1). Null: it has no token, as while the person
 * has not confirmed a device (RFC 8628 section 3.5), at any depth. The error is a predicate without a value: then the program gets nothing of
 * the reply. Of what the provider sends beside the tokens the program gets only named texts, and none with a token in it.
 */
export function readLoginReply(
  text: string,
  format: ReplyType,
  placeholder: string,
  nowMs: number,
): Result<LoginReply | null, string> {
  const parsed = format === FORM_TYPE ? parseForm(text) : parseUniqueJson(text);
  if (!parsed.ok) return parsed;
  const { value } = parsed;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return err('is no JSON object');
  const fields = objectOf(value);
  const [access, refresh, id] = [fields['access_token'], fields['refresh_token'], fields['id_token']];
  if (access === undefined && refresh === undefined && id === undefined) {
    return namesToken(value) ? err('has a token in another place than usual') : ok(null);
  }
  if (!isToken(access)) return err('has no access token');
  if (refresh !== undefined && refresh !== null && !isToken(refresh)) return err('has an unusable refresh token');
  const type = fields['token_type'];
  if (type !== undefined && (typeof type !== 'string' || type.toLowerCase() !== 'bearer')) {
    return err('has a token of another type than bearer');
  }
  const refreshToken = isToken(refresh) ? refresh : null;
  if (access === placeholder || isRefreshPlaceholder(refreshToken ?? '')) return err('has placeholders of svc');
  const tokens = refreshToken === null ? [access] : [access, refreshToken];
  return ok(replyOf(fields, format, tokens, placeholder, nowMs));
}

/** Reads a form that every parser reads the same way: no `;`, and no name twice. The error is a predicate. */
function parseForm(text: string): Result<Readonly<Record<string, unknown>>, string> {
  if (!/^(?:[A-Za-z0-9+&=._~:/*-]|%[0-9A-Fa-f]{2})*$/.test(text)) return err('is no form');
  const pairs = [...new URLSearchParams(text)];
  if (new Set(pairs.map(([name]) => name)).size < pairs.length) return err('has a name twice');
  const { expires_in: seconds, ...fields } = Object.fromEntries(pairs);
  return ok({ ...fields, ...(seconds !== undefined && { expires_in: Number(seconds) }) });
}

function formatReply(fields: object, format: ReplyType): string {
  if (format === 'json') return JSON.stringify(fields);
  const texts = Object.entries(fields).map(([name, value]) => [name, String(value)]);
  return new URLSearchParams(Object.fromEntries(texts)).toString();
}

/** Whether a member at any depth has the name of a token, in any usual spelling. Such a reply may have tokens that were not read. */
function namesToken(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, member]) => TOKEN_NAME.test(name) || namesToken(member));
}

function isToken(value: unknown): value is string {
  if (typeof value !== 'string' || !/^[!-~]+$/.test(value)) return false;
  return value.length >= LEAST_TOKEN_CHARACTERS && value.length <= MAX_TOKEN_CHARACTERS;
}

function replyOf(
  fields: Readonly<Record<string, unknown>>,
  format: ReplyType,
  tokens: readonly string[],
  placeholder: string,
  nowMs: number,
): LoginReply {
  const [access = '', refresh] = tokens;
  const id = textOf(fields['id_token']);
  const secrets = isToken(id) ? [...tokens, id] : tokens;
  const take = (value: unknown): string | null => takeText(value, secrets);
  const named = readIdToken(id ?? '');
  const claims = Object.fromEntries(Object.entries(named.claims).filter(([, text]) => take(text) !== null));
  const account = takeEach(fields['account'], ['uuid', 'email_address'], take);
  const organization = takeEach(fields['organization'], ['uuid', 'name'], take);
  const scope = take(fields['scope']);
  const expiresIn = secondsOf(fields['expires_in']);
  const email = take(named.email);
  const idToken = id === null ? {} : { id_token: placeholderIdToken({ email, claims }, endOf(nowMs)) };
  const reply = {
    access_token: placeholder,
    token_type: 'Bearer',
    ...(refresh !== undefined && {
      refresh_token: refreshPlaceholder(placeholder),
      refresh_token_expires_in: PLACEHOLDER_SECONDS,
    }),
    ...((expiresIn !== null || refresh !== undefined) && { expires_in: FIRST_SECONDS }),
    ...(scope !== null && { scope }),
    ...idToken,
    ...(account !== null && { account }),
    ...(organization !== null && { organization }),
  };
  return {
    accessToken: new Secret(access),
    refreshToken: refresh === undefined ? null : new Secret(refresh),
    expiresIn,
    account: {
      who: account?.['email_address'] ?? email,
      plan: take(named.plan)?.slice(0, 100) ?? null,
      may_make_keys: scope === null || scope.split(' ').includes(MAY_MAKE_KEYS),
    },
    reply: formatReply(reply, format),
  };
}

/** A short line of visible text in which no token is. */
function takeText(value: unknown, tokens: readonly string[]): string | null {
  const text = textOf(value);
  if (text === null || text.length > MOST_TEXT_CHARACTERS) return null;
  if (replaceHidden(text, { keepsLines: false, write: escapeHidden }) !== text) return null;
  return tokens.some((token) => text.includes(token)) ? null : text;
}

function takeEach(
  value: unknown,
  names: readonly string[],
  take: (value: unknown) => string | null,
): Readonly<Record<string, string>> | null {
  const members = objectOf(value);
  const taken = names.flatMap((name) => {
    const text = take(members[name]);
    return text === null ? [] : [[name, text] as const];
  });
  return taken.length === 0 ? null : Object.fromEntries(taken);
}

function secondsOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= PLACEHOLDER_SECONDS
    ? value
    : null;
}

function endOf(nowMs: number): number {
  return Math.floor(nowMs / 1000) + PLACEHOLDER_SECONDS;
}
