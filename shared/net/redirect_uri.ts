/** Where an authorization server sends a browser back to, with a code (RFC 6749 section 3.1.2, RFC 8252 section 7.3). */

const MAX_CHARACTERS = 2_000;
/** Members of the answer, which a client's own query must not contain. */
const OF_THE_ANSWER = ['code', 'state', 'iss', 'error', 'error_description', 'error_uri'];

/**
 * Why a redirect URI is not accepted, as a predicate; null if it is. Accepted are https, and http to this machine for
 * native programs. It has to be written as a URL parser writes it, so that everybody who reads it sees the same host.
 */
export function redirectUriProblem(text: string): string | null {
  if (text.length > MAX_CHARACTERS) return `is longer than ${MAX_CHARACTERS} characters`;
  if (!/^https?:\/\/[!-~]+$/.test(text) || !URL.canParse(text)) return 'is not an https URL, nor http to localhost';
  const url = new URL(text);
  if (url.href !== text && url.href !== `${text}/`) return `is not written in its normal form`;
  if (url.username !== '' || url.password !== '') return 'contains a user name or password';
  if (text.includes('#')) return 'has a fragment';
  if (OF_THE_ANSWER.some((name) => url.searchParams.has(name))) return 'has a member of the answer in its query';
  return url.protocol === 'https:' || isLoopback(url) ? null : 'is plain http to another machine';
}

/** Whether a request's redirect URI is this registered one: the same text, but for the port of a loopback address. */
export function isSameRedirect(registered: string, asked: string): boolean {
  if (registered === asked) return true;
  if (redirectUriProblem(asked) !== null || !URL.canParse(registered)) return false;
  const [one, other] = [new URL(registered), new URL(asked)];
  return isLoopback(one) && isLoopback(other) && withoutPort(one) === withoutPort(other);
}

/** Whether it leads to a program on the machine of the browser. */
export function isLoopbackRedirect(text: string): boolean {
  return URL.canParse(text) && isLoopback(new URL(text));
}

function isLoopback({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(hostname);
}

function withoutPort({ hostname, pathname, search }: URL): string {
  return hostname + pathname + search;
}
