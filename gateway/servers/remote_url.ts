import { isLoopbackHostname } from '../../shared/model/loopback_hostname.ts';
/** The problem with the URL of a remote server, for a person; null if it is allowed. */
export function remoteUrlProblem(text: string | null, isLocal: boolean): string | null {
  if (text === null || !URL.canParse(text)) return 'url is not a URL; give the https:// address of the server';
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return 'url contains a user name or password; use a header instead';
  if (url.protocol === 'https:') return null;
  if (url.protocol !== 'http:') return `url has the scheme ${url.protocol}//; a remote server is called over https`;
  if (!isLoopbackHostname(url.hostname)) return 'url is plain http, which others can read and change; use https';
  return isLocal ? null : 'url is plain http on this machine, which a hosted control plane may not name; use https';
}
