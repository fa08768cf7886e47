import type { McpServer } from '../../shared/model/mcp_server.ts';

/** Scopes that mean the same in every shell: a server chooses them, and a person copies the command. */
const PLAIN_SCOPE = /^[\w:/.][\w:/.-]{0,199}$/;
const MAX_SCOPES = 20;

/** For a person: a server asks for more access than it was granted (RFC 6750 section 3.1), and the command that grants it. */
export function scopeText(
  { name }: Pick<McpServer, 'name'>,
  { requiredScope = '' }: { readonly requiredScope?: string },
): string {
  const scopes = requiredScope.split(' ').filter((scope) => scope !== '');
  const isPlain = scopes.length > 0 && scopes.length <= MAX_SCOPES && scopes.every((scope) => PLAIN_SCOPE.test(scope));
  const options = isPlain ? scopes.map((scope) => ` --add-scope ${scope}`).join('') : '';
  return `it asks for more access than you granted it (403); to grant it: svc mcp authorize ${name}${options}`;
}
