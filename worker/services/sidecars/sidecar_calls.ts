import { compactVerify, decodeJwt } from 'jose';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import {
  CALL_TYP,
  type CallClaims,
  callClaims,
  MAX_CALL_SECONDS,
  REVOCATION_TYP,
} from '../../../shared/wire/channel.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { isId } from '../../../shared/wire/ids.ts';
import { type ReceivingKey, signingKey } from '../../../shared/wire/sidecars.ts';
import { findSidecar, type SidecarRow, takeCallId, touchSidecar } from '../../store/sidecars.ts';
import { sha256Base64Url } from '../../kernel/encoding.ts';
import { nowSeconds, type ServiceContext } from '../../kernel/service_context.ts';
import { importSigningKey } from './sidecar_keys.ts';

/** A call as it arrived. */
export interface SidecarCall {
  /** The JWT of the Authorization header. */
  readonly token: string;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Reads the body; called once the token has proved that a sidecar sent it. */
  readonly readBody: () => Promise<Uint8Array<ArrayBuffer>>;
}

/** The sidecar that made a verified call, and the call's nonce. */
export interface SidecarCaller {
  readonly sidecarId: string;
  readonly userId: string;
  readonly enterpriseId: string;
  /** It gets nothing that the enterprise owns. */
  readonly ownOnly: boolean;
  readonly receivingKey: ReceivingKey;
  readonly nonce: string;
}

/**
 * Verifies a sidecar's call (design section 6): an enrolled sidecar signed it, for this control plane and for this
 * method, target and body; it is recent; and a POST is used only once. Only a caller that proves it holds the sidecar's
 * key is told about the sidecar's clock or revocation.
 */
export async function authenticateCall(
  context: ServiceContext,
  call: SidecarCall,
): Promise<Result<SidecarCaller, ApiError>> {
  const sidecar = await findSidecar(context.database, issuer(call.token));
  if (sidecar === null)
    return err(invalidCallError('the token does not name a sidecar that is enrolled here: enrol it again'));
  const claims = await verifySignature(sidecar, call.token);
  if (claims === null)
    return err(invalidCallError('the token does not verify with the key that this sidecar enrolled'));
  if (hasEnded(context, sidecar)) return err(await refuseRevoked(context, sidecar, claims.jti));
  const problem = (await findMisuse(context, call, claims)) ?? (await replay(context, call, claims));
  if (problem !== null) return err(problem);
  markSeen(context, sidecar);
  return ok({
    sidecarId: sidecar.id,
    userId: sidecar.userId,
    enterpriseId: sidecar.enterpriseId,
    ownOnly: sidecar.ownOnly,
    receivingKey: JSON.parse(sidecar.receivingKey),
    nonce: claims.jti,
  });
}

/** Whether a sidecar was revoked, or its time is over. */
export function hasEnded(
  { clock }: ServiceContext,
  { revokedAt, expiresAt }: Pick<SidecarRow, 'revokedAt' | 'expiresAt'>,
): boolean {
  return revokedAt !== null || (expiresAt !== null && Date.parse(expiresAt) <= clock.now());
}

/** The refusal of a sidecar that has ended since its call was let in, such as while its body came; null if it has not. */
export async function findEnd(
  context: ServiceContext,
  { sidecarId, nonce }: Pick<SidecarCaller, 'sidecarId' | 'nonce'>,
): Promise<ApiError | null> {
  const sidecar = await findSidecar(context.database, sidecarId);
  if (sidecar === null) return invalidCallError('the sidecar is not enrolled here any more: enrol it again');
  return hasEnded(context, sidecar) ? refuseRevoked(context, sidecar, nonce) : null;
}

/** The signed refusal of a sidecar that has ended. The signature keeps a machine in between from making a sidecar give up. */
export async function refuseRevoked(context: ServiceContext, sidecar: SidecarRow, nonce: string): Promise<ApiError> {
  const payload = { sidecar_id: sidecar.id, nonce, revoked_at: sidecar.revokedAt ?? sidecar.expiresAt };
  const proof = await context.controlPlane.sign(REVOCATION_TYP, payload);
  return apiError(
    'sidecar_revoked',
    'this sidecar was revoked or its time is over: enrol it again with a user that may, or let the job join again',
    { proof },
  );
}

/** The issuer named by the token; not verified. */
function issuer(token: string): string {
  try {
    const { iss } = decodeJwt(token);
    return iss !== undefined && isId('sdc', iss) ? iss : '';
  } catch {
    return '';
  }
}

async function verifySignature(sidecar: SidecarRow, token: string): Promise<CallClaims | null> {
  try {
    const key = await importSigningKey(signingKey.parse(JSON.parse(sidecar.signingKey)));
    const { payload, protectedHeader } = await compactVerify(token, key, { algorithms: ['EdDSA', 'Ed25519'] });
    if (protectedHeader.typ !== CALL_TYP) return null;
    const claims = callClaims.safeParse(JSON.parse(new TextDecoder().decode(payload)));
    return claims.success ? claims.data : null;
  } catch {
    return null;
  }
}

async function findMisuse(context: ServiceContext, call: SidecarCall, claims: CallClaims): Promise<ApiError | null> {
  if (claims.aud !== context.controlPlane.id)
    return invalidCallError('aud is not this control plane: enrol the sidecar here');
  const now = context.clock.now();
  if (Math.abs(now / 1000 - claims.iat) > MAX_CALL_SECONDS) {
    const details = { server_time: new Date(now).toISOString() };
    return apiError(
      'clock_skew',
      "iat differs by more than a minute from the control plane's time: set the clock of this machine",
      details,
    );
  }
  const life = claims.exp - claims.iat;
  if (life <= 0 || life > MAX_CALL_SECONDS) return invalidCallError('exp must be after iat by at most 60 seconds');
  if (claims.htm !== call.method || claims.htu !== call.target)
    return invalidCallError('htm and htu do not match this call');
  return claims.bd === (await sha256Base64Url(await call.readBody()))
    ? null
    : invalidCallError('bd is not the SHA-256 of the body');
}

/** After this time a token with this iat is refused as too old, so its id need not be kept. */
const CALL_ID_SECONDS = 2 * MAX_CALL_SECONDS;

async function replay(context: ServiceContext, call: SidecarCall, claims: CallClaims): Promise<ApiError | null> {
  if (call.method !== 'POST') return null;
  const entry = { sidecarId: claims.iss, jti: claims.jti, expiresAt: claims.iat + CALL_ID_SECONDS };
  const fresh = await takeCallId(context.database, entry, nowSeconds(context));
  return fresh ? null : apiError('replayed_call', 'jti was used before: sign each call with a new jti');
}

const SEEN_RESOLUTION_MS = 60_000;

/** For display only; no call waits for it. */
function markSeen(context: ServiceContext, sidecar: SidecarRow): void {
  const now = context.clock.now();
  if (sidecar.lastSeenAt !== null && now - Date.parse(sidecar.lastSeenAt) < SEEN_RESOLUTION_MS) return;
  const seenAt = new Date(now).toISOString();
  context.defer('when a sidecar was last seen', () => touchSidecar(context.database, sidecar.id, seenAt));
}

function invalidCallError(message: string): ApiError {
  return apiError('invalid_sidecar_call', message);
}
