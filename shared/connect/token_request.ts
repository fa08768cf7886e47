import { parseJson } from '../model/json.ts';
import type { LoginGrant } from '../model/new_login.ts';

/** A request for tokens at the token URL of a program's login (RFC 6749 section 3.2), as the program sent it. */
interface TokenRequest {
  /** The body as text. */
  readonly body: string;
  /** The values of all headers. */
  readonly headers: readonly string[];
}

/**
 * `answer`: a refresh with a placeholder, which svc answers itself. `refuse`: a placeholder in any other request. `own`: the
 * program's own matter, without a placeholder.
 */
type TokenRequestDecision =
  | { readonly kind: 'answer'; readonly placeholder: string; readonly scope: string | null }
  | { readonly kind: 'refuse' }
  | { readonly kind: 'own' };

/** The refresh token that a program holds beside the placeholder of its access token. It opens nothing. */
export function refreshPlaceholder(placeholder: string): string {
  return REFRESH_PLACEHOLDER + placeholder.slice(-40);
}

const REFRESH_PLACEHOLDER = 'svc-placeholder-refresh-';

/** Whether a refresh token is a placeholder of any svc, also one that does not exist any more. */
export function isRefreshPlaceholder(token: string): boolean {
  return token.startsWith(REFRESH_PLACEHOLDER);
}

/** How long a program may keep its placeholders: ten years, so that it does not ask for new ones before. */
export const PLACEHOLDER_SECONDS = 315_360_000;

/** What to do with a request for tokens, for the placeholders of the login's bindings and the client id of its program. */
export function decideTokenRequest(
  placeholders: readonly string[],
  clientId: string,
  { body, headers }: TokenRequest,
): TokenRequestDecision {
  const fields = readTokenFields(body);
  const isRefresh = fields.get('grant_type') === 'refresh_token' && fields.get('client_id') === clientId;
  const known = placeholders.find((each) => fields.get('refresh_token') === refreshPlaceholder(each));
  if (isRefresh && known !== undefined) {
    return { kind: 'answer', placeholder: known, scope: fields.get('scope') ?? null };
  }
  const texts = [body, ...fields.values(), ...headers];
  const isHeld = placeholders
    .flatMap((each) => [each, refreshPlaceholder(each)])
    .some((each) => texts.some((text) => text.includes(each)));
  return { kind: isHeld ? 'refuse' : 'own' };
}

/** What a request has to have for each grant of a new login, by its `grant_type`. */
const GRANTS: ReadonlyMap<string, { readonly grant: LoginGrant; readonly fields: readonly string[] }> = new Map([
  ['authorization_code', { grant: 'authorization_code', fields: ['code', 'code_verifier'] }],
  ['urn:ietf:params:oauth:grant-type:device_code', { grant: 'device_code', fields: ['device_code'] }],
]);

/** Whether the body of a request for tokens is that of a new login, of this client and by one of these grants. */
export function isLoginGrant(
  { clientId, grants }: { readonly clientId: string; readonly grants: readonly LoginGrant[] },
  body: string,
): boolean {
  const fields = readTokenFields(body);
  const wanted = GRANTS.get(fields.get('grant_type') ?? '');
  if (wanted === undefined || !grants.includes(wanted.grant) || fields.get('client_id') !== clientId) return false;
  return wanted.fields.every((name) => (fields.get(name) ?? '') !== '');
}

/** The code that the request of a new login redeems. */
export function loginCode(body: string): string {
  const fields = readTokenFields(body);
  return fields.get(GRANTS.get(fields.get('grant_type') ?? '')?.fields[0] ?? '') ?? '';
}

/** Whether the body of a request for tokens is a refresh, which brings no new login. */
export function isRefreshGrant(body: string): boolean {
  return readTokenFields(body).get('grant_type') === 'refresh_token';
}

/** The fields of a request for tokens: JSON, as some clients send it, or a form. */
function readTokenFields(body: string): ReadonlyMap<string, string> {
  const value = parseJson(body);
  if (typeof value !== 'object' || value === null) return new Map(new URLSearchParams(body));
  const fields = Object.entries(value);
  return new Map(fields.flatMap(([name, text]) => (typeof text === 'string' ? [[name, text] as const] : [])));
}

/** The answer to a refresh with a placeholder: the placeholders again (RFC 6749 section 5.1). */
export function placeholderReply(
  placeholder: string,
  scope: string | null,
  expiresIn: number = PLACEHOLDER_SECONDS,
): string {
  return JSON.stringify({
    access_token: placeholder,
    token_type: 'Bearer',
    expires_in: expiresIn,
    refresh_token: refreshPlaceholder(placeholder),
    ...(scope !== null && { scope }),
  });
}
