import { CompactEncrypt, importJWK } from 'jose';
import { LOGIN_TOKENS_TYP, type LoginTokens } from '../../shared/wire/pending_logins.ts';
import type { CapturedTokens, OpenLogin } from './control_channel.ts';

/** A compact JWE that only the control plane can open, once, as the tokens of this login from this sidecar. */
export async function sealLoginTokens(
  sidecarId: string,
  { id, key }: OpenLogin,
  { accessToken, refreshToken, expiresIn, account }: CapturedTokens,
): Promise<string> {
  const tokens: LoginTokens = {
    access_token: accessToken.reveal(),
    refresh_token: refreshToken?.reveal() ?? null,
    expires_in: expiresIn,
    account,
  };
  return new CompactEncrypt(new TextEncoder().encode(JSON.stringify(tokens)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', typ: LOGIN_TOKENS_TYP, login: id, sidecar: sidecarId })
    .encrypt(await importJWK(key, 'ECDH-ES'));
}
