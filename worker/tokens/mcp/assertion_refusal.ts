import { oauthError, type OAuthRefusal } from './oauth_refusal.ts';

/** Why no token was given for an assertion. */
export type AssertionRefusal =
  /** It is no JWT, no enterprise has its issuer, or the issuer's keys do not verify it. */
  | { readonly reason: 'not_verified' }
  /** A claim of an assertion that the issuer signed, or its type (`typ`). */
  | { readonly reason: 'claim'; readonly claim: string }
  | { readonly reason: 'scope' }
  | { readonly reason: MemberRefusal };

/** Why an assertion about somebody who has signed in here gives no token: it is in the audit log. */
export type MemberRefusal =
  /** Nobody has signed in here as this person, or the person may not sign in now. */
  | 'not_admitted'
  | 'several_enterprises'
  | 'client_not_allowed'
  | 'client_unknown'
  /** The person has disconnected the client. */
  | 'disconnected'
  | 'used_before';

/**
 * What the client learns. Before the signature is verified, it is the same for every reason: otherwise anybody could ask which
 * providers there are. Who the person is, and why it may not sign in, is never said.
 */
export function toOAuthRefusal(refusal: AssertionRefusal): OAuthRefusal {
  switch (refusal.reason) {
    case 'not_verified':
      return oauthError('invalid_grant', NOT_VERIFIED);
    case 'claim':
      return oauthError('invalid_grant', `${refusal.claim} of the assertion is wrong: ${claimWords(refusal.claim)}`);
    case 'scope':
      return oauthError(
        'invalid_scope',
        'the scope of the assertion, or of this request, is not mcp: ask for this one',
      );
    case 'not_admitted':
      return oauthError('invalid_grant', NOT_ADMITTED);
    case 'several_enterprises':
      return oauthError('invalid_grant', SEVERAL);
    case 'client_not_allowed':
      return oauthError('unauthorized_client', NOT_ALLOWED);
    case 'client_unknown':
      return oauthError('invalid_client', 'this client is not registered here, or its document cannot be read');
    case 'disconnected':
      return oauthError('invalid_grant', DISCONNECTED);
    case 'used_before':
      return oauthError('invalid_grant', 'the assertion was used before: request a new one for each token');
    default:
      return refusal;
  }
}

const NOT_VERIFIED =
  'the assertion cannot be verified: it has to be a JWT that the OpenID provider of an enterprise here signed with a key that it publishes';
const NOT_ADMITTED =
  'nobody here may sign in as the person of the assertion: the person has to sign in here once with this provider';
const SEVERAL =
  'the person is in several enterprises here that have this provider: request an assertion whose aud_tenant names one by its id';
const NOT_ALLOWED =
  'the enterprise does not allow its provider to connect this client: ask an admin to add its client_id to provider_mcp_clients';
const DISCONNECTED = 'the person has disconnected this client: connect it again in a browser';

const CLAIM_WORDS: Readonly<Record<string, string>> = {
  typ: 'it has to be oauth-id-jag+jwt',
  iss: 'it has to be the issuer of the provider',
  aud: 'it has to be the issuer of this server alone',
  client_id: 'it has to be the client that shows the assertion',
  resource: 'it has to be the URL of the MCP server alone',
  exp: 'it has to be in the future, and at most 20 minutes after iat',
  iat: 'it has to be in the past, at most 20 minutes ago',
  nbf: 'it has to be in the past',
  sub: 'it has to be 1 to 255 characters of ASCII',
  jti: 'it has to be 1 to 1000 characters',
  aud_tenant: 'it has to be text',
};

function claimWords(claim: string): string {
  return CLAIM_WORDS[claim] ?? 'it is not supported, and is never ignored';
}
