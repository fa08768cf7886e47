import { Secret } from '../../../shared/model/secret.ts';
import type { Outbound } from '../../kernel/outbound.ts';
import type { OAuthClient } from './oauth_client.ts';
import type { Grantee } from './oauth_grants.ts';

/**
 * The secret part of an oauth2 credential. It is sealed as one value, so that rotated tokens are stored together or not
 * at all.
 */
export interface OAuthBundle {
  readonly clientSecret: Secret | null;
  /** The private key of a client that proves with it who it is. It is not stored as the secret, which a worker of an earlier version would send. */
  readonly clientKey?: Secret | null;
  readonly accessToken: Secret | null;
  readonly refreshToken: Secret | null;
}

interface BundleText {
  readonly client_secret: string | null;
  readonly client_key?: string;
  readonly access_token: string | null;
  readonly refresh_token: string | null;
}

export function readBundle(value: Secret): OAuthBundle {
  const text: BundleText = JSON.parse(value.reveal());
  return {
    clientSecret: secretOf(text.client_secret),
    clientKey: secretOf(text.client_key ?? null),
    accessToken: secretOf(text.access_token),
    refreshToken: secretOf(text.refresh_token),
  };
}

export function writeBundle({ clientSecret, clientKey, accessToken, refreshToken }: OAuthBundle): Secret {
  const text: BundleText = {
    client_secret: clientSecret?.reveal() ?? null,
    ...(clientKey && { client_key: clientKey.reveal() }),
    access_token: accessToken?.reveal() ?? null,
    refresh_token: refreshToken?.reveal() ?? null,
  };
  return new Secret(JSON.stringify(text));
}

function secretOf(text: string | null): Secret | null {
  return text === null ? null : new Secret(text);
}

/** The client of tokens, with what it proves itself by. */
export function granteeOf(
  { outbound }: { readonly outbound: Outbound },
  { client, bundle }: { readonly client: OAuthClient; readonly bundle: OAuthBundle },
): Grantee {
  const { clientSecret, clientKey = null } = bundle;
  return { outbound, client, clientSecret, clientKey };
}
