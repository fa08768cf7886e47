import type { Plan } from '../../shared/model/plan.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { planDigests, sealPlan } from '../../shared/plan/seal.ts';
import type { PlanLockContent } from '../../shared/wire/plan/plan_lock.ts';
import { formatLock } from './lock_file.ts';
import { openLock, type LockKey } from './lock_key.ts';

/** The dependencies of freezing. */
interface FreezePorts {
  readonly key: LockKey;
  /** Lets the sidecar sign the content; returns a compact JWS. */
  sign(content: PlanLockContent): Promise<string>;
}

interface FrozenPlan {
  readonly content: PlanLockContent;
  /** The text of `plan.lock`. */
  readonly text: string;
}

/** Creates the lock of a plan for one image. The signed result is verified, so that an unusable lock is never written. */
export async function freezePlan(
  plan: Plan,
  file: Uint8Array<ArrayBuffer>,
  imageId: string,
  ports: FreezePorts,
): Promise<Result<FrozenPlan, string>> {
  const content = await sealPlan(plan, await planDigests(plan, file), imageId);
  const jws = await ports.sign(content);
  const opened = await openLock(ports.key, jws);
  if (!opened.ok) return err(`the sidecar's signature ${opened.error}`);
  if (opened.value.lock_sha256 !== content.lock_sha256) return err("the sidecar's signature covers another lock");
  return ok({ content, text: formatLock(content, jws) });
}
