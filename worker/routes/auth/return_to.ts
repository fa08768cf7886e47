/** A page of ours to go on to; the first one for anything else, so that no link sends people elsewhere once signed in. */
export function localPath(text: string | undefined): string {
  const base = 'https://here.invalid';
  if (text === undefined || !/^\/[\x21-\x7e]*$/.test(text) || !URL.canParse(text, base)) return '/';
  const url = new URL(text, base);
  return url.origin === base && !url.pathname.startsWith('//') ? url.pathname + url.search : '/';
}
