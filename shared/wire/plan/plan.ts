import { z } from 'zod';
import { EFFECTS } from '../../model/host_binding.ts';
import {
  MAX_PLAN_STEPS,
  MAX_STEP_COLLECTS,
  MAX_STEP_HOSTS,
  MAX_STEP_MOUNTS,
  PLAN_VERSION,
  type CollectedPath,
  type Plan,
  type PlanStep,
} from '../../model/plan.ts';
import { oneOfValues } from '../host_binding_fields.ts';
import { describeUnknownFields } from '../host_binding_rules.ts';
import {
  collectNameText,
  commandWords,
  containerPathText,
  imageText,
  mountSourceText,
  planCredentialText,
  planNameText,
  reachHostText,
  stepIdText,
  stepScopeTexts,
  timeoutSecondsNumber,
} from './plan_fields.ts';
import { checkCollects, checkHosts, checkMounts, checkStepIds } from './plan_rules.ts';

const TRUST_FIELDS = ['effect', 'hosts', 'credential', 'scopes'];
const MOUNT_FIELDS = ['source', 'target', 'access'];
const COLLECT_FIELDS = ['path', 'as'];
const STEP_FIELDS = ['id', 'command', 'trust', 'mounts', 'collect', 'timeout_seconds'];
const PLAN_FIELDS = ['version', 'name', 'image', 'steps'];

const stepTrust = z.strictObject(
  {
    effect: oneOfValues(EFFECTS),
    hosts: list(reachHostText, 'hosts, such as ["api.example.com"]', MAX_STEP_HOSTS)
      .min(1, {
        error: 'is empty: name the hosts that the step reaches, or leave trust out for a step without network',
      })
      .superRefine(checkHosts),
    credential: planCredentialText.optional(),
    scopes: stepScopeTexts.optional(),
  },
  { error: objectError('{effect, hosts, credential?, scopes?}', TRUST_FIELDS) },
);

const planMount = z.strictObject(
  { source: mountSourceText, target: containerPathText, access: oneOfValues(['read', 'write']).default('read') },
  { error: objectError('{source, target, access?}', MOUNT_FIELDS) },
);

const collectedPath = z.strictObject(
  { path: containerPathText, as: collectNameText.optional() },
  { error: objectError('{path, as?}', COLLECT_FIELDS) },
);

const planStep = z.strictObject(
  {
    id: stepIdText,
    command: commandWords,
    trust: stepTrust.optional(),
    mounts: list(planMount, 'mounts, each {source, target, access?}', MAX_STEP_MOUNTS).default([]),
    collect: list(collectedPath, 'outputs, each {path, as?}', MAX_STEP_COLLECTS).superRefine(checkCollects).default([]),
    timeout_seconds: timeoutSecondsNumber,
  },
  { error: objectError('a step, {id, command, trust?, mounts?, collect?, timeout_seconds?}', STEP_FIELDS) },
);

/** `plan.yaml` (design section 9). Strict: an unknown key could have been meant to narrow what a step may do. */
export const planInput = z.strictObject(
  {
    version: z.literal(PLAN_VERSION, { error: ({ input }) => versionProblem(input) }),
    name: planNameText,
    image: imageText,
    steps: list(planStep, 'steps, each {id, command, ...}', MAX_PLAN_STEPS)
      .min(1, { error: 'is empty: write at least one step' })
      .superRefine(checkStepIds, { when: () => true })
      .superRefine(checkMounts),
  },
  { error: objectError('a plan, {version: 1, name, image, steps}', PLAN_FIELDS) },
);
type ValidPlan = z.output<typeof planInput>;
type ValidStep = ValidPlan['steps'][number];

/** The plan that validation accepted. */
export function toPlan(valid: ValidPlan): Plan {
  return { name: valid.name, image: valid.image, steps: valid.steps.map(toStep) };
}

function toStep(step: ValidStep): PlanStep {
  const { trust } = step;
  return {
    id: step.id,
    command: step.command,
    ...(trust !== undefined && {
      trust: {
        effect: trust.effect,
        hosts: trust.hosts,
        ...(trust.credential !== undefined && { credential: trust.credential }),
        ...(trust.scopes !== undefined && { scopes: trust.scopes }),
      },
    }),
    mounts: step.mounts,
    collect: step.collect.map(({ path, as }): CollectedPath => ({ path, as: as ?? lastPartOf(path) })),
    timeoutSeconds: step.timeout_seconds,
  };
}

/** The default name of an output. */
function lastPartOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function list<T extends z.ZodType>(item: T, what: string, most: number) {
  return z
    .array(item, { error: ({ input }) => `${input === undefined ? 'is missing: write' : 'must be'} a list of ${what}` })
    .max(most, { error: `has more than ${most} entries` });
}

function versionProblem(input: unknown): string {
  if (input === undefined) return `is missing: write ${PLAN_VERSION}`;
  return `must be the number ${PLAN_VERSION}, the only format this svc knows`;
}

/** The messages for an object itself: what it must be, and its unknown fields with the nearest known ones. */
function objectError(what: string, known: readonly string[]) {
  return (issue: { readonly code?: string | undefined; readonly input?: unknown; readonly keys?: unknown }): string => {
    if (issue.code === 'unrecognized_keys') {
      return describeUnknownFields(Array.isArray(issue.keys) ? issue.keys.map(String) : [], known);
    }
    return issue.input === undefined ? `is missing: write ${what}` : `must be ${what}`;
  };
}
