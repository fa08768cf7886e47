/** An authorisation request (RFC 6749 section 4.1.1) with PKCE (RFC 7636 section 4.3). */
interface AuthorizationLink {
  readonly clientId: string;
  readonly redirectURL: string;
  readonly state: string;
  readonly challenge: string;
  /** Further parameters, such as the scope. */
  readonly more: Readonly<Record<string, string>>;
}

/** The link that a person opens to authorise. Parameters that the endpoint's URL already has stay. */
export function authorizationLink(endpoint: string, request: AuthorizationLink): string {
  const { clientId, redirectURL, state, challenge, more } = request;
  const url = new URL(endpoint);
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectURL,
    ...more,
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}
