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
  const { user } = account;
  const claims = {
    client_id: 'svc',
    family: familyId,
    enterprise_id: user.enterpriseId,
    role: user.role,
    ...emailClaims(account),
  };
  return signAccessToken(context, { issuer, audience: issuer, subject: user.id, claims });
}

interface TokenContent {
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** A JWT that is signed by the current key and lives ten minutes. */
export async function signAccessToken(
  context: TokenContext,
  { issuer, audience, subject, claims }: TokenContent,
): Promise<string> {
  const { kid, privateKey } = await context.accessKeys.signer(context.database);
  const issuedAt = nowSeconds(context);
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: ALGORITHM, typ: ACCESS_TOKEN_TYP, kid })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject(subject)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ACCESS_TOKEN_SECONDS)
    .setJti(randomToken())
    .sign(privateKey);
}

/** The address, and whether it is verified. Nothing here relies on it. */
function emailClaims({ user: { email }, person: { verifiedEmail } }: Account): object {
  return email === null ? {} : { email, email_verified: email === verifiedEmail };
}

/** The claims of an access token; null unless one of our keys signed it, it is for us and it has not expired. */
export async function verifyAccessToken(context: TokenContext, token: string): Promise<AccessClaims | null> {
  const issuer = context.publicUrl;
  if (issuer === null) return null;
  const claims = accessClaims.safeParse(await verifyToken(context, token, { issuer, audience: issuer }));
  return claims.success ? claims.data : null;
}

/** The content of a token; null unless one of our keys signed it for this audience and it has not expired. */
export async function verifyToken(
  context: TokenContext,
  token: string,
  { issuer, audience }: Pick<TokenContent, 'issuer' | 'audience'>,
): Promise<unknown> {
  const kid = keyIdOf(token);
  if (kid === null) return null;
  const key = await context.accessKeys.verifier(context.database, kid);
  if (key === null) return null;
  try {
    const { payload } = await jwtVerify(token, key, {
      issuer,
      audience,
      typ: ACCESS_TOKEN_TYP,
      algorithms: [ALGORITHM],
      requiredClaims: ['exp', 'iat', 'jti'],
      maxTokenAge: ACCESS_TOKEN_SECONDS,
      currentDate: new Date(context.clock.now()),
    });
    return payload;
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
