import { Secret } from '../../../shared/model/secret.ts';

/**
 * The secret part of an oauth2 credential. It is sealed as one value, so that rotated tokens are stored together or not
 * at all.
 */
export interface OAuthBundle {
  readonly clientSecret: Secret | null;
  readonly accessToken: Secret | null;
  readonly refreshToken: Secret | null;
}

interface BundleText {
  readonly client_secret: string | null;
  readonly access_token: string | null;
  readonly refresh_token: string | null;
}

export function readBundle(value: Secret): OAuthBundle {
  const text: BundleText = JSON.parse(value.reveal());
  return {
    clientSecret: secretOf(text.client_secret),
    accessToken: secretOf(text.access_token),
    refreshToken: secretOf(text.refresh_token),
  };
}

export function writeBundle({ clientSecret, accessToken, refreshToken }: OAuthBundle): Secret {
  const text: BundleText = {
    client_secret: clientSecret?.reveal() ?? null,
    access_token: accessToken?.reveal() ?? null,
    refresh_token: refreshToken?.reveal() ?? null,
  };
  return new Secret(JSON.stringify(text));
}

function secretOf(text: string | null): Secret | null {
  return text === null ? null : new Secret(text);
}
