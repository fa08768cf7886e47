import { decodeProtectedHeader, errors, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { id } from '../../shared/wire/primitives.ts';
import { randomToken } from '../kernel/encoding.ts';
import { nowSeconds } from '../kernel/service_context.ts';
import type { TokenContext } from './token_context.ts';
import type { Account } from '../store/accounts.ts';
import { ACCESS_TOKEN_SECONDS } from './access_keys.ts';

/** RFC 9068. */
const ACCESS_TOKEN_TYP = 'at+jwt';
const ALGORITHM = 'EdDSA';

/**
 * The claims of an access token that are used. The user's rights are looked up for each call, never read from the
 * token.
 */
const accessClaims = z.object({ sub: id('usr'), family: z.string() });
type AccessClaims = z.infer<typeof accessClaims>;

/**
 * Creates an access token for a user's sign-in: a JWT signed by the current key, with this control plane as issuer and
 * audience.
 */
export async function issueAccessToken(
  context: TokenContext,
  issuer: string,
  { account, familyId }: { readonly account: Account; readonly familyId: string },
): Promise<string> {
  const { kid, privateKey } = await context.accessKeys.signer(context.database);
  const { user } = account;
  const issuedAt = nowSeconds(context);
  const about = {
    client_id: 'svc',
    family: familyId,
    enterprise_id: user.enterpriseId,
    role: user.role,
    ...emailClaims(user),
  };
  return new SignJWT(about)
    .setProtectedHeader({ alg: ALGORITHM, typ: ACCESS_TOKEN_TYP, kid })
    .setIssuer(issuer)
    .setAudience(issuer)
    .setSubject(user.id)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ACCESS_TOKEN_SECONDS)
    .setJti(randomToken())
    .sign(privateKey);
}

/** The address, and whether it is verified. Nothing here relies on it. */
function emailClaims({ email, verifiedEmail }: Account['user']): object {
  return email === null ? {} : { email, email_verified: email === verifiedEmail };
}

/** The claims of an access token; null unless one of our keys signed it, it is for us and it has not expired. */
export async function verifyAccessToken(context: TokenContext, token: string): Promise<AccessClaims | null> {
  const issuer = context.publicUrl;
  const kid = keyIdOf(token);
  if (issuer === null || kid === null) return null;
  const key = await context.accessKeys.verifier(context.database, kid);
  if (key === null) return null;
  try {
    const { payload } = await jwtVerify(token, key, {
      issuer,
      audience: issuer,
      typ: ACCESS_TOKEN_TYP,
      algorithms: [ALGORITHM],
      requiredClaims: ['exp', 'iat', 'jti'],
      maxTokenAge: ACCESS_TOKEN_SECONDS,
      currentDate: new Date(context.clock.now()),
    });
    const claims = accessClaims.safeParse(payload);
    return claims.success ? claims.data : null;
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}

function keyIdOf(token: string): string | null {
  try {
    const { kid } = decodeProtectedHeader(token);
    return typeof kid === 'string' ? kid : null;
  } catch {
    // Any error means that it is not a valid JWT.
    return null;
  }
}
