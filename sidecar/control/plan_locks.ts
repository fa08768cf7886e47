import { CompactSign, compactVerify } from 'jose';
import { lockDigest } from '../../shared/plan/seal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import {
  PLAN_LOCK_TYP,
  type PlanLockContent,
  type PlanLockPayload,
  planLockPayload,
} from '../../shared/wire/plan/plan_lock.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { Identity } from '../../machine/sidecar_identity.ts';
import type { Refusal } from '../../shared/model/refusal.ts';

type PlanLockRefusalReason = 'plan_lock_invalid' | 'plan_lock_foreign';

/** Signs plan locks with the sidecar's own key, and verifies them with it. */
export interface PlanLocks {
  sign(content: PlanLockContent): Promise<Result<string, Refusal<PlanLockRefusalReason>>>;
  verify(lock: string): Promise<Result<PlanLockPayload, Refusal<PlanLockRefusalReason>>>;
}

const FREEZE = 'freeze the plan again with: svc plan freeze';
const decoder = new TextDecoder('utf-8', { fatal: true });

/** The locks of one sidecar. Only this sidecar's signature counts: a lock records what a person reviewed on this machine. */
export function createPlanLocks(
  identity: Pick<Identity, 'sidecarId' | 'signingKey' | 'verifyingKey'>,
  clock: Clock,
): PlanLocks {
  return {
    async sign(content) {
      const payload = { ...content, sidecar_id: identity.sidecarId, issued_at: new Date(clock.now()).toISOString() };
      if (!(await isSealed(payload))) return refuseInvalid('its lock_sha256 is not the digest of its content');
      const bytes = new TextEncoder().encode(JSON.stringify(payload));
      const signer = new CompactSign(bytes).setProtectedHeader({ alg: 'EdDSA', typ: PLAN_LOCK_TYP });
      return ok(await signer.sign(identity.signingKey));
    },
    async verify(lock) {
      const payload = await openLock(lock, identity);
      if (payload === null) return refuseUnsigned(lock, identity.sidecarId);
      const parsed = planLockPayload.safeParse(payload);
      const field = parsed.error?.issues[0]?.path.join('.') ?? '';
      if (!parsed.success) return refuseInvalid(`its field ${field} is not valid in this lock version`);
      if (parsed.data.sidecar_id !== identity.sidecarId) return refuseForeign(parsed.data.sidecar_id);
      return (await isSealed(parsed.data)) ? ok(parsed.data) : refuseInvalid('its digest does not match its content');
    },
  };
}

async function isSealed({ lock_sha256, ...sealed }: PlanLockContent): Promise<boolean> {
  return (await lockDigest(sealed)) === lock_sha256;
}

/** The payload of a lock with this sidecar's signature; null for any other lock. */
async function openLock(lock: string, { verifyingKey }: Pick<Identity, 'verifyingKey'>): Promise<unknown> {
  try {
    const { payload, protectedHeader } = await compactVerify(lock, verifyingKey, { algorithms: ['EdDSA'] });
    return protectedHeader.typ === PLAN_LOCK_TYP ? JSON.parse(decoder.decode(payload)) : null;
  } catch {
    return null;
  }
}

/** The id is unverified and is used only in the message. */
function refuseUnsigned(lock: string, own: string): Result<never, Refusal<PlanLockRefusalReason>> {
  const said = /"sidecar_id":"(sdc_[0-9a-z]{26})"/.exec(Buffer.from(lock.split('.')[1] ?? '', 'base64url').toString());
  const signer = said?.[1];
  if (signer !== undefined && signer !== own) return refuseForeign(signer);
  return refuseInvalid('it is not signed by this sidecar, or was changed after signing');
}

function refuseForeign(sidecarId: string): Result<never, Refusal<PlanLockRefusalReason>> {
  const message = `The plan's lock was signed by another sidecar (${sidecarId}). Review the plan, then ${FREEZE}`;
  return err({ reason: 'plan_lock_foreign', message });
}

function refuseInvalid(problem: string): Result<never, Refusal<PlanLockRefusalReason>> {
  return err({
    reason: 'plan_lock_invalid',
    message: `The plan's lock is refused: ${problem}. Review the plan, then ${FREEZE}`,
  });
}
