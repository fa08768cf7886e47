import type { HeaderField, ReplyHead } from '../../shared/net/http/http1_head.ts';

/**
 * Whether an upstream may have tied what it allows to the connection itself, as NTLM and Negotiate do (RFC 4559): the client tried
 * it, or the reply is about authentication. Looks at the request as the client sent it, and so at nothing that depends on the
 * injected secret.
 */
export function mayBindConnection(request: readonly HeaderField[], { status, fields }: ReplyHead): boolean {
  if (status === 401 || status === 407) return true;
  return (
    request.some(({ name, value }) => CREDENTIALS.has(name) && CONNECTION_SCHEME.test(value)) ||
    fields.some(({ name }) => ABOUT_AUTHENTICATION.has(name))
  );
}

const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization']);
const CONNECTION_SCHEME = /^\s*(?:ntlm|negotiate|kerberos)\b/i;
const ABOUT_AUTHENTICATION: ReadonlySet<string> = new Set([
  'www-authenticate',
  'proxy-authenticate',
  'authentication-info',
  'proxy-authentication-info',
  'persistent-auth',
]);
