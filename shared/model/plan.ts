import type { Effect } from './host_binding.ts';

/** The plan and lock format that this version reads and writes. */
export const PLAN_VERSION = 1;

export const MAX_PLAN_STEPS = 64;
export const MAX_STEP_HOSTS = 100;
/** Fields of minted secrets that a step narrows. */
export const MAX_STEP_SCOPES = 20;
export const MAX_STEP_MOUNTS = 32;
export const MAX_STEP_COLLECTS = 32;
export const MAX_COMMAND_WORDS = 1024;
/** All words of a command together, in UTF-8: well below the kernel's limit for a program start. */
export const MAX_COMMAND_BYTES = 96 * 1024;

/** Default time limit of a step, and so the life of its scope (design section 9). */
export const DEFAULT_STEP_TIMEOUT_SECONDS = 900;
export const MAX_STEP_TIMEOUT_SECONDS = 24 * 3600;

/** What a step may reach and for which effect: the trust contract that freezing seals. */
interface StepTrust {
  readonly effect: Effect;
  /** Exact hosts, canonical; never empty. */
  readonly hosts: readonly string[];
  /** `vault://...`: the credential that the step expects; a binding of one of its hosts must use it. */
  readonly credential?: string;
  /** What the step does less with minted secrets, as `--scope` of a session has it. */
  readonly scopes?: readonly string[];
}

/** A folder or file of this machine that is mounted into the container for every step. */
interface PlanMount {
  /** As written: relative to the plan's folder. */
  readonly source: string;
  /** An absolute path in the container. */
  readonly target: string;
  readonly access: 'read' | 'write';
}

/** An output that is copied out of the container after its step has succeeded. */
export interface CollectedPath {
  /** An absolute path in the container. */
  readonly path: string;
  /** Its name in the output folder: the last part of `path` unless written. */
  readonly as: string;
}

export interface PlanStep {
  readonly id: string;
  /** The program and its arguments; no shell reads them. */
  readonly command: readonly string[];
  /** Absent: the step has no proxy and no scope, and no network unless the plan runs with open egress. */
  readonly trust?: StepTrust;
  readonly mounts: readonly PlanMount[];
  readonly collect: readonly CollectedPath[];
  readonly timeoutSeconds: number;
}

/** Steps that run one after the other in one container (specification section 1, Tool-step egress). */
export interface Plan {
  readonly name: string;
  readonly image: string;
  readonly steps: readonly PlanStep[];
}
