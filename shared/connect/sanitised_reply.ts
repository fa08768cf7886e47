/** Headers that give an agent its own session, or ask it for its own credentials. */
const COOKIES_AND_CHALLENGES: ReadonlySet<string> = new Set([
  'set-cookie',
  'set-cookie2',
  'www-authenticate',
  'proxy-authenticate',
  'authentication-info',
  'proxy-authentication-info',
  // RFC 8053
  'optional-www-authenticate',
  'authentication-control',
]);

/** Offers another host, port or protocol in place of the one that the credential was added for (RFC 7838). */
const ALTERNATIVES = 'alt-svc';

/**
 * True for a header (lower-case name) that is removed from a credentialed reply (design sections 5 and 13). A binding with
 * `keepCookies` passes cookies and challenges, but never an alternative service.
 */
export function isWithheldHeader(lowerName: string, keepCookies = false): boolean {
  return lowerName === ALTERNATIVES || (!keepCookies && COOKIES_AND_CHALLENGES.has(lowerName));
}

/** True for a header that passes only with `keepCookies`. */
export function isCookieOrChallenge(lowerName: string): boolean {
  return COOKIES_AND_CHALLENGES.has(lowerName);
}

/** The reply of an operation run: of the upstream's headers only the content type. */
export interface SanitisedReply {
  readonly upstreamStatus: number;
  /** Empty if the upstream sent none. */
  readonly contentType: string;
  readonly body: Uint8Array;
}
