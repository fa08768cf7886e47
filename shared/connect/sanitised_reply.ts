/**
 * Headers of an upstream's reply that a connector does not pass on (design section 5): they would give the agent a session,
 * a challenge to answer with credentials, or another host to go to.
 */
const WITHHELD_HEADERS: ReadonlySet<string> = new Set([
  'set-cookie',
  'set-cookie2',
  'www-authenticate',
  'proxy-authenticate',
  'authentication-info',
  'proxy-authentication-info',
  'alt-svc',
]);

/** True for a header, by its lower-case name, that is taken out of a connector's reply. */
export function isWithheldHeader(lowerName: string): boolean {
  return WITHHELD_HEADERS.has(lowerName);
}

/** The reply of an operation run: nothing of the upstream's headers but the type of its body. */
export interface SanitisedReply {
  readonly upstreamStatus: number;
  /** Empty when the upstream named none. */
  readonly contentType: string;
  readonly body: Uint8Array;
}
