import type { OAuthErrorBody } from '../../../shared/wire/mcp/mcp_clients.ts';

/** A refusal in the words of OAuth. */
export type OAuthRefusal = OAuthErrorBody;

export function oauthError(error: OAuthRefusal['error'], description: string): OAuthRefusal {
  return { error, error_description: toDescription(description) };
}

/** RFC 6749 section 5.2 allows printable ASCII without quotes and backslashes. */
function toDescription(text: string): string {
  return text.replaceAll('"', "'").replaceAll(/[^\x20-\x7e]|\\/g, '?');
}
