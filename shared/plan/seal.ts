import { canonicalJson } from '../audit/canonical_json.ts';
import { PLAN_VERSION, type Plan, type PlanStep } from '../model/plan.ts';
import type { PlanLockContent, SealedPlan, SealedStep } from '../wire/plan/plan_lock.ts';

/** The digests of `plan.yaml`: of the file's bytes, and of its content. */
interface PlanDigests {
  readonly plan_file_sha256: string;
  readonly plan_sha256: string;
}

/** Digests of a plan and of the file that it was read from. */
export async function planDigests(plan: Plan, file: Uint8Array<ArrayBuffer>): Promise<PlanDigests> {
  return { plan_file_sha256: await sha256Hex(file), plan_sha256: await sha256Hex(utf8(canonicalPlan(plan))) };
}

/** The canonical text of a plan's content: defaults filled in, hosts canonical, no layout and no comments. */
function canonicalPlan(plan: Plan): string {
  return canonicalJson({ version: PLAN_VERSION, name: plan.name, image: plan.image, steps: plan.steps.map(sealStep) });
}

/** The content of the lock: the plan's content and the image it was frozen with, under one digest. */
export async function sealPlan(plan: Plan, digests: PlanDigests, imageId: string): Promise<PlanLockContent> {
  const sealed: SealedPlan = {
    version: PLAN_VERSION,
    name: plan.name,
    ...digests,
    image: { name: plan.image, id: imageId },
    steps: plan.steps.map(sealStep),
  };
  return { ...sealed, lock_sha256: await lockDigest(sealed) };
}

/** SHA-256 over the canonical form of a lock without this digest and the signature. */
export function lockDigest(sealed: SealedPlan): Promise<string> {
  const { version, name, plan_file_sha256, plan_sha256, image, steps } = sealed;
  return sha256Hex(utf8(canonicalJson({ version, name, plan_file_sha256, plan_sha256, image, steps })));
}

/** A step in the lock's form. */
function sealStep(step: PlanStep): SealedStep {
  const { id, command, trust, mounts, collect, timeoutSeconds } = step;
  return {
    id,
    command: [...command],
    ...(trust !== undefined && { effect: trust.effect }),
    hosts: [...(trust?.hosts ?? [])],
    ...(trust?.credential !== undefined && { credential: trust.credential }),
    ...(trust?.scopes !== undefined && { scopes: [...trust.scopes] }),
    timeout_seconds: timeoutSeconds,
    mounts: mounts.map((mount) => ({ ...mount })),
    collect: collect.map((output) => ({ ...output })),
  };
}

function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

async function sha256Hex(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', bytes);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
