import type { PlanLockPayload, SealedStep } from '../../shared/wire/plan/plan_lock.ts';
import type { PlanEgress } from '../../shared/model/egress.ts';
import { LaunchError, valueOrLaunchError } from '../launch/launch_error.ts';
import { removeContainer } from '../engine/remove_container.ts';
import { UndoStack } from '../launch/undo_stack.ts';
import { bootPlanContainer, type PlanBoot } from './plan_container.ts';
import type { NewPlanSession, PlanPorts } from './plan_ports.ts';
import { runStep, type RunningPlan, type StepResult } from './run_step.ts';

/** A verified plan, and how to run it. */
export interface PlanRun {
  readonly lock: PlanLockPayload;
  readonly session: NewPlanSession;
  readonly boot: PlanBoot;
  /** A part of the lock's steps, in its order. */
  readonly steps: readonly SealedStep[];
  readonly outputFolder: (sessionId: string) => string;
  readonly keepGoing: boolean;
  /** Called after the last step; the container stays until it resolves. */
  readonly beforeEnd: (containerId: string) => Promise<void>;
}

export interface PlanEnd {
  readonly sessionId: string;
  readonly outputFolder: string;
  /** True if it was interrupted before the last step ended. */
  readonly interrupted: boolean;
  /** One for each requested step, in order. */
  readonly results: readonly StepResult[];
}

/** The exit code that a shell gives after SIGINT. */
export const INTERRUPTED_EXIT = 130;

/**
 * Creates session and container and runs the steps; afterwards both are removed, also on failure. If the caller is killed, the
 * sidecar removes the rest: it knows the session's owner and container.
 */
export async function runPlan(ports: PlanPorts, run: PlanRun): Promise<PlanEnd> {
  const undo = new UndoStack((error) => ports.warn(`not taken down in order: ${messageOf(error)}`));
  try {
    const session = await ports.sessions.create(run.session);
    undo.add(() => ports.sessions.end(session.sessionId));
    refuseWhenStopped(ports);
    const container = await bootPlanContainer(ports, run.boot, session, (id) => {
      undo.add(async () => valueOrLaunchError(await removeContainer(ports.runtime, id, ports.pause)));
    });
    refuseWhenStopped(ports);
    const outputFolder = run.outputFolder(session.sessionId);
    const results = await runSteps(ports, { session, container, outputFolder }, run);
    const interrupted = ports.stop.aborted;
    if (!interrupted) await run.beforeEnd(container.id);
    return { sessionId: session.sessionId, outputFolder, interrupted, results };
  } finally {
    await undo.undo();
  }
}

async function runSteps(ports: PlanPorts, plan: RunningPlan, run: PlanRun): Promise<readonly StepResult[]> {
  const results: StepResult[] = [];
  let stopped: string | null = null;
  for (const [index, step] of run.steps.entries()) {
    const place = `step ${index + 1}/${run.steps.length} ${step.id}`;
    if (stopped !== null) {
      results.push(resultOfSkipped(step, stopped));
      continue;
    }
    ports.progress(`${place}: ${reachText(step, run.boot.egress)}`);
    const result = await runStep(ports, plan, step);
    results.push(result);
    ports.progress(`${place}: ${resultText(result)}`);
    stopped = findStopReason(ports, run, result);
  }
  return results;
}

/** Why no further step runs; null to continue. */
function findStopReason(ports: PlanPorts, run: PlanRun, result: StepResult): string | null {
  if (ports.stop.aborted) return 'the plan was ended before it';
  if (!result.clean) return `step ${result.id} left something behind`;
  if (result.outcome === 'done' || run.keepGoing) return null;
  return `step ${result.id} did not succeed`;
}

function resultOfSkipped(step: SealedStep, problem: string): StepResult {
  return { id: step.id, outcome: 'not_run', exitCode: null, seconds: 0, problem, collected: [], clean: true };
}

/** The reach of a step, for the line that announces it. */
function reachText(step: SealedStep, egress: PlanEgress): string {
  const open = egress === 'open';
  if (step.effect === undefined) return open ? 'no proxy, and the open network' : 'no network';
  return `${step.effect} on ${step.hosts.join(', ')}${open ? ' by the proxy, and the open network' : ''}`;
}

function resultText(result: StepResult): string {
  const exit = result.exitCode === null || result.exitCode === 0 ? '' : ` (exit ${result.exitCode})`;
  const outputs = result.collected.length === 0 ? '' : `, kept ${result.collected.map(({ as }) => as).join(', ')}`;
  const why = result.problem === null ? '' : `: ${result.problem}`;
  return `${OUTCOME_WORDS[result.outcome]}${exit} after ${result.seconds.toFixed(1)} s${outputs}${why}`;
}

/** Each outcome, for people. */
export const OUTCOME_WORDS: { readonly [Outcome in StepResult['outcome']]: string } = {
  done: 'done',
  failed: 'failed',
  timed_out: 'timed out',
  interrupted: 'interrupted',
  not_run: 'not run',
};

function refuseWhenStopped(ports: PlanPorts): void {
  if (ports.stop.aborted)
    throw new LaunchError({ message: 'stopped before a step was run', fixes: [] }, INTERRUPTED_EXIT);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
