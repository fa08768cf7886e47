import type { ChildProcess } from 'node:child_process';
import type { Writable } from 'node:stream';
import type { Result } from '../../shared/model/result.ts';
import type { ContainerRuntime } from '../engine/container_runtime.ts';
import type { EngineName } from '../engine/engine_address.ts';
import type { PlanEgress } from '../../shared/model/egress.ts';
import type { SandboxSession, SandboxSessions, SessionOwner } from '../launch/launch_ports.ts';

/** A session for the container of a plan: the sidecar reads reach and image from the lock, and issues no token. */
export interface NewPlanSession {
  readonly name: string;
  readonly ttlSeconds: number;
  readonly owner: SessionOwner | null;
  readonly image: { readonly name: string; readonly id: string };
  readonly runtime: { readonly program: EngineName; readonly endpoint: string };
  readonly egress: PlanEgress;
  /** The lock's JWS. */
  readonly lock: string;
}

/** The proxy credential of one step, and what it opens. */
export interface StepScope {
  readonly scopeId: string;
  readonly token: string;
  readonly hosts: readonly string[];
  readonly effect: string;
  /** Placeholders for its environment; null: those of the session. */
  readonly sentinels: SandboxSession['sentinels'] | null;
}

/** The result of starting a step. */
interface ReportedStart {
  readonly stepId: string;
  /** Null: it has none. */
  readonly scopeId: string | null;
  /** True once its command runs in the container, as its user. */
  readonly began: boolean;
}

/** The sidecar's local API, as plans use it. A refusal is thrown with its message, unless a method returns it. */
export interface PlanSessions extends Pick<SandboxSessions, 'recordContainer' | 'openListener' | 'end'> {
  create(wanted: NewPlanSession): Promise<SandboxSession>;
  /** The error says why the step gets no scope. */
  openScope(sessionId: string, stepId: string): Promise<Result<StepScope, string>>;
  /** Records what a step reaches, and whether it began to run under its scope. */
  recordStart(sessionId: string, start: ReportedStart): Promise<void>;
  /** Succeeds if it has already ended. */
  closeScope(scopeId: string): Promise<void>;
}

/** Where the output of a step goes; it may be a terminal. */
export type StepOutput = Writable & { readonly isTTY?: boolean };

/** The dependencies of running a plan. */
export interface PlanPorts {
  readonly runtime: ContainerRuntime;
  readonly sessions: PlanSessions;
  /** Copies a file or folder out of a container, as an archive on the child's standard output. */
  readonly archiveOf: (containerId: string, path: string) => ChildProcess;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Calls back once after this time; returns a function to cancel. */
  readonly schedule: (ms: number, call: () => void) => () => void;
  readonly pause: (ms: number) => Promise<void>;
  /** Aborted to end the plan: first the step, then the container, then the session. */
  readonly stop: AbortSignal;
  readonly stdout: StepOutput;
  readonly stderr: StepOutput;
  /** Prints a line of progress. */
  readonly progress: (text: string) => void;
  readonly warn: (text: string) => void;
  /** At least 32 unguessable characters of letters, digits, `-` and `_`. */
  readonly newSentinel: () => string;
}
