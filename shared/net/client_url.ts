const MAX_CHARACTERS = 500;

/**
 * What is wrong with a URL as the id of an OAuth client, as a predicate; null if nothing is (OAuth client ID metadata document).
 * It has to be written as a URL parser writes it, so that one client has one id.
 */
export function clientUrlProblem(text: string): string | null {
  if (text.length > MAX_CHARACTERS || !URL.canParse(text)) return 'is not a URL, or too long';
  const url = new URL(text);
  if (url.protocol !== 'https:' || url.port !== '') return 'is not an https URL on port 443';
  if (url.username !== '' || url.password !== '' || text.includes('#')) return 'has a user, a password or a fragment';
  if (url.pathname === '/') return 'has no path';
  return url.href === text ? null : 'is not written in its normal form';
}
