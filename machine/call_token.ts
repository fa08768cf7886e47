import { randomBytes } from 'node:crypto';
import { type CryptoKey, SignJWT } from 'jose';
import { CALL_TYP, MAX_CALL_SECONDS } from '../shared/wire/channel.ts';
import { sha256 } from './sha256.ts';

/** What a call's token is bound to. */
interface CallFacts {
  readonly sidecarId: string;
  readonly controlPlaneId: string;
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  readonly body: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

interface CallToken {
  readonly jwt: string;
  /** Single use; the reply must name it. */
  readonly nonce: string;
}

/** The token that authenticates one call. It is useless for another target, method or body, and after a minute. */
export async function callToken(facts: CallFacts, signingKey: CryptoKey): Promise<CallToken> {
  const nonce = randomBytes(16).toString('base64url');
  const issuedAt = Math.floor(facts.now / 1000);
  const bodyDigest = sha256(facts.body).toString('base64url');
  const jwt = await new SignJWT({ htm: facts.method, htu: facts.target, bd: bodyDigest })
    .setProtectedHeader({ alg: 'EdDSA', typ: CALL_TYP })
    .setIssuer(facts.sidecarId)
    .setAudience(facts.controlPlaneId)
    .setJti(nonce)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + MAX_CALL_SECONDS)
    .sign(signingKey);
  return { jwt, nonce };
}
