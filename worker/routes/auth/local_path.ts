/**
 * One of our own pages to return to; anything else becomes the first page, so that a link cannot redirect people to
 * another site after sign-in.
 */
export function localPath(text: string | undefined): string {
  const base = 'https://here.invalid';
  if (text === undefined || !/^\/[\x21-\x7e]*$/.test(text) || !URL.canParse(text, base)) return '/';
  const url = new URL(text, base);
  return url.origin === base && !url.pathname.startsWith('//') ? url.pathname + url.search : '/';
}
