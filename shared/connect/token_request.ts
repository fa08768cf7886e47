import { parseJson } from '../model/json.ts';

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

/** The fields of a request for tokens: JSON, as some clients send it, or a form. */
function readTokenFields(body: string): ReadonlyMap<string, string> {
  const value = parseJson(body);
  if (typeof value !== 'object' || value === null) return new Map(new URLSearchParams(body));
  const fields = Object.entries(value);
  return new Map(fields.flatMap(([name, text]) => (typeof text === 'string' ? [[name, text] as const] : [])));
}

/** The answer to a refresh with a placeholder: the placeholders again (RFC 6749 section 5.1). */
export function placeholderReply(placeholder: string, scope: string | null): string {
  return JSON.stringify({
    access_token: placeholder,
    token_type: 'Bearer',
    expires_in: PLACEHOLDER_SECONDS,
    refresh_token: refreshPlaceholder(placeholder),
    ...(scope !== null && { scope }),
  });
}
