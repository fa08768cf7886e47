/** What gives an agent a session of its own, or a challenge to answer with credentials of its own. */
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

/** An offer of another host, port or protocol for what the credential was added to here (RFC 7838). */
const ALTERNATIVES = 'alt-svc';

/**
 * True for a header, by its lower-case name, that is taken out of a credentialed reply (design sections 5 and 13). A binding
 * with `keepCookies` passes cookies and challenges on, never an offer of another host.
 */
export function isWithheldHeader(lowerName: string, keepCookies = false): boolean {
  return lowerName === ALTERNATIVES || (!keepCookies && COOKIES_AND_CHALLENGES.has(lowerName));
}

/** True for a header that only `keepCookies` lets pass. */
export function isCookieOrChallenge(lowerName: string): boolean {
  return COOKIES_AND_CHALLENGES.has(lowerName);
}

/** The reply of an operation run: nothing of the upstream's headers but the type of its body. */
export interface SanitisedReply {
  readonly upstreamStatus: number;
  /** Empty when the upstream named none. */
  readonly contentType: string;
  readonly body: Uint8Array;
}
