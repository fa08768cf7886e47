import { lockDigest } from '../../shared/plan/seal.ts';
import type { PlanLockContent, PlanLockPayload, SealedPlan, SealedStep } from '../../shared/wire/plan/plan_lock.ts';

export const PINNED_IMAGE = `sha256:${'a'.repeat(64)}`;

/** A step that reads from one host. */
export function sampleSealedStep(change: Partial<SealedStep> = {}): SealedStep {
  return {
    id: 'fetch',
    command: ['curl', 'https://api.example.test/'],
    effect: 'read',
    hosts: ['api.example.test'],
    timeout_seconds: 60,
    mounts: [],
    collect: [],
    ...change,
  };
}

/** The frozen form of a plan with these steps, with its digest. */
export async function samplePlanLock(
  steps: readonly SealedStep[] = [sampleSealedStep()],
  change: Partial<SealedPlan> = {},
): Promise<PlanLockContent> {
  const sealed: SealedPlan = {
    version: 1,
    name: 'nightly',
    plan_file_sha256: 'b'.repeat(64),
    plan_sha256: 'c'.repeat(64),
    image: { name: 'agent-tools:1', id: PINNED_IMAGE },
    steps: [...steps],
    ...change,
  };
  return { ...sealed, lock_sha256: await lockDigest(sealed) };
}

/** The same lock after the sidecar has signed it and read it back. */
export async function samplePlanLockPayload(): Promise<PlanLockPayload> {
  return { ...(await samplePlanLock()), sidecar_id: `sdc_${'1'.repeat(26)}`, issued_at: '2026-01-02T03:04:05.678Z' };
}
