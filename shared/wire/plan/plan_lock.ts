import { z } from 'zod';
import { EFFECTS } from '../../model/host_binding.ts';
import { MAX_PLAN_STEPS, MAX_STEP_COLLECTS, MAX_STEP_HOSTS, MAX_STEP_MOUNTS, PLAN_VERSION } from '../../model/plan.ts';
import {
  collectNameText,
  commandWords,
  containerPathText,
  imageText,
  mountSourceText,
  planCredentialText,
  planNameText,
  sealedHostText,
  stepIdText,
  stepScopeTexts,
  timeoutSecondsNumber,
} from './plan_fields.ts';
import { checkHosts, checkStepIds } from './plan_rules.ts';
import { id, imageId, time } from '../primitives.ts';

/** The `typ` of a plan lock's JWS, so that nothing else signed by the sidecar can pass for a lock. */
export const PLAN_LOCK_TYP = 'svc-plan-lock+jws';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'is not a SHA-256 in lower-case hex');

/** A step as sealed in the lock. Without `effect` the step reaches no host: `hosts` is empty, and it gets no scope and no proxy variables. */
export const sealedStep = z
  .strictObject({
    id: stepIdText,
    command: commandWords,
    effect: z.enum(EFFECTS).optional(),
    hosts: z.array(sealedHostText).max(MAX_STEP_HOSTS).superRefine(checkHosts),
    credential: planCredentialText.optional(),
    /** Not there in a lock of an earlier version, nor understood by one. */
    scopes: stepScopeTexts.optional(),
    timeout_seconds: timeoutSecondsNumber.unwrap(),
    mounts: z
      .array(z.strictObject({ source: mountSourceText, target: containerPathText, access: z.enum(['read', 'write']) }))
      .max(MAX_STEP_MOUNTS),
    collect: z.array(z.strictObject({ path: containerPathText, as: collectNameText })).max(MAX_STEP_COLLECTS),
  })
  .superRefine((step, context) => {
    if ((step.effect === undefined) === (step.hosts.length === 0)) return;
    context.addIssue({ code: 'custom', path: ['hosts'], message: 'and effect stand together, or neither of them' });
  });
export type SealedStep = z.output<typeof sealedStep>;

const sealedFields = {
  version: z.literal(PLAN_VERSION),
  name: planNameText,
  /** SHA-256 of `plan.yaml`, byte for byte. */
  plan_file_sha256: sha256,
  /** SHA-256 over the canonical plan: its content, independent of layout. */
  plan_sha256: sha256,
  image: z.strictObject({ name: imageText, id: imageId }),
  steps: z
    .array(sealedStep)
    .min(1)
    .max(MAX_PLAN_STEPS)
    .superRefine(checkStepIds, { when: () => true }),
};

/** The sealed content of a lock, before its own digest. */
const sealedPlan = z.strictObject(sealedFields);
export type SealedPlan = z.output<typeof sealedPlan>;

/** `content` of `POST /v1/sandbox-proxy/plan-locks`: what is signed. */
export const planLockContent = z.strictObject({
  ...sealedFields,
  /** SHA-256 over the canonical form of all other fields. */
  lock_sha256: sha256,
});
export type PlanLockContent = z.output<typeof planLockContent>;

/** The payload of the JWS: the content, the signer, and the time. */
export const planLockPayload = z.strictObject({ ...planLockContent.shape, sidecar_id: id('sdc'), issued_at: time });
export type PlanLockPayload = z.output<typeof planLockPayload>;

/** A compact JWS; the code that opens it checks its content. */
const compactJws = z
  .string()
  .max(4 * 1024 * 1024)
  .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/, 'is not a signature (compact JWS)');

/** `plan.lock`: the content for people to review, and the signature that counts. */
export const planLockFile = z.strictObject({ ...planLockContent.shape, jws: compactJws });
export type PlanLockFile = z.output<typeof planLockFile>;

/** The reply of `POST /v1/sandbox-proxy/plan-locks`. */
export const planLockReply = z.object({ lock: compactJws });

/** The reply of `POST /v1/sandbox-proxy/step-scopes`. */
export const stepScopeReply = z.object({
  scope_id: id('scp'),
  token: z.string().min(32),
  expires_at: z.string(),
  hosts: z.array(z.string()),
  effect: z.string(),
  /** The placeholders of the accounts that the step uses. An older sidecar sends none: then those of the session are used. */
  sentinels: z.array(z.object({ env: z.string(), value: z.string() })).optional(),
});
