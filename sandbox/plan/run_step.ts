import type { ChildProcess } from 'node:child_process';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { SealedStep } from '../../shared/wire/plan/plan_lock.ts';
import type { SandboxSession } from '../launch/launch_ports.ts';
import { collectOutputs, type Collected } from './collect_outputs.ts';
import type { PlanContainer } from './plan_container.ts';
import type { PlanPorts, StepScope } from './plan_ports.ts';
import { stepEnvironment } from './step_environment.ts';
import { passOn } from './pass_on.ts';
import { markCommand, StartMark } from './start_mark.ts';

/** How a step ended. `not_run`: it was never started. */
type StepOutcome = 'done' | 'failed' | 'timed_out' | 'interrupted' | 'not_run';

export interface StepResult {
  readonly id: string;
  readonly outcome: StepOutcome;
  /** The command's own; null when it has none. */
  readonly exitCode: number | null;
  readonly seconds: number;
  /** A sentence, if the exit code does not explain the result. */
  readonly problem: string | null;
  readonly collected: readonly Collected[];
  /** False if one of its processes may still run. Then nothing else runs in this container. */
  readonly clean: boolean;
}

/** The running plan of a step. */
export interface RunningPlan {
  readonly session: SandboxSession;
  readonly container: PlanContainer;
  /** Where outputs are kept; each step has a folder there. */
  readonly outputFolder: string;
}

/** Grace time for the engine's client after its process was killed. */
const CLIENT_GRACE_MS = 10_000;

/**
 * Runs one step: opens its scope, runs its command, ends all its processes, closes the scope, and collects its outputs. A
 * step with a sealed reach does not start without its scope.
 */
export async function runStep(ports: PlanPorts, plan: RunningPlan, step: SealedStep): Promise<StepResult> {
  const startedAt = ports.now();
  const seconds = (): number => (ports.now() - startedAt) / 1000;
  const scope = await scopeOf(ports, plan, step);
  if (!scope.ok) {
    return {
      id: step.id,
      outcome: 'not_run',
      exitCode: null,
      seconds: seconds(),
      problem: scope.error,
      collected: [],
      clean: true,
    };
  }
  const end = await commandEnd(ports, plan, step, scope.value);
  const clean = await plan.container.sweep();
  const closed = scope.value === null || (await scopeClosed(ports, scope.value));
  const judged = judge(step, end, { clean, closed });
  const base = { id: step.id, exitCode: end.exitCode, clean: clean && closed };
  if (judged.outcome !== 'done') return { ...base, ...judged, seconds: seconds(), collected: [] };
  const outputs = await collectOutputs(ports, plan, step);
  if (outputs.ok) return { ...base, ...judged, seconds: seconds(), collected: outputs.value };
  return { ...base, outcome: 'failed', problem: outputs.error, seconds: seconds(), collected: [] };
}

/** Opens the step's scope; null for a step without a reach. Its hosts must equal the sealed ones. */
async function scopeOf(
  ports: PlanPorts,
  plan: RunningPlan,
  step: SealedStep,
): Promise<Result<StepScope | null, string>> {
  if (step.effect === undefined) return ok(null);
  const scope = await ports.sessions.openScope(plan.session.sessionId, step.id);
  if (!scope.ok) return err(`it got no scope, so it was not run: ${scope.error}`);
  const { hosts, effect } = scope.value;
  if (effect === step.effect && hosts.toSorted().join(' ') === step.hosts.toSorted().join(' ')) return scope;
  await scopeClosed(ports, scope.value);
  return err('the scope it got is not the one that was sealed, so it was not run');
}

async function scopeClosed(ports: PlanPorts, scope: StepScope): Promise<boolean> {
  try {
    await ports.sessions.closeScope(scope.scopeId);
    return true;
  } catch (error) {
    ports.warn(
      `the scope of the step was not closed in order: ${error instanceof Error ? error.message : String(error)}`,
    );
    return false;
  }
}

interface CommandEnd {
  readonly exitCode: number | null;
  readonly cause: 'ended' | 'timed_out' | 'interrupted' | 'unrecorded';
  readonly problem: string | null;
}

/**
 * Runs the command until it ends, times out or the plan ends. Records, with its scope if it has one, whether it started. If
 * that cannot be recorded, the command is ended.
 */
async function commandEnd(
  ports: PlanPorts,
  { session, container }: RunningPlan,
  step: SealedStep,
  scope: StepScope | null,
): Promise<CommandEnd> {
  let cause: CommandEnd['cause'] = 'ended';
  const cancels: (() => void)[] = [];
  const cutShort = (why: Exclude<CommandEnd['cause'], 'ended'>) => (): void => {
    if (cause !== 'ended') return;
    cause = why;
    void container.sweep();
    cancels.push(ports.schedule(CLIENT_GRACE_MS, () => child.kill('SIGKILL')));
  };
  let recorded: Promise<string | null> = Promise.resolve(null);
  const record = (began: boolean): void => {
    recorded = startRecorded(ports, { sessionId: session.sessionId, stepId: step.id, scope, began });
    void recorded.then((problem) => problem !== null && cutShort('unrecorded')());
  };
  const word = ports.newSentinel();
  const mark = new StartMark(word, () => record(true));
  const child = container.startStep(markCommand(word, step.command), stepEnvironment(step.id, session, scope));
  child.stdin?.on('error', () => undefined);
  child.stdin?.end();
  const outputs = Promise.all([passOn(child.stdout, ports.stdout), passOn(child.stderr, ports.stderr, mark)]);
  const interrupt = cutShort('interrupted');
  cancels.push(ports.schedule(step.timeout_seconds * 1000, cutShort('timed_out')));
  ports.stop.addEventListener('abort', interrupt);
  if (ports.stop.aborted) interrupt();
  const end = await waitForEnd(child);
  await outputs;
  ports.stop.removeEventListener('abort', interrupt);
  for (const cancel of cancels) cancel();
  if (!mark.began) record(false);
  const unrecorded = await recorded;
  return { ...end, cause: unrecorded === null ? cause : 'unrecorded', problem: unrecorded ?? end.problem };
}

interface StepStart {
  readonly sessionId: string;
  readonly stepId: string;
  readonly scope: StepScope | null;
  readonly began: boolean;
}

/** Why the start could not be recorded; null if it was. */
async function startRecorded(ports: PlanPorts, { sessionId, stepId, scope, began }: StepStart): Promise<string | null> {
  try {
    await ports.sessions.recordStart(sessionId, { stepId, scopeId: scope?.scopeId ?? null, began });
    return null;
  } catch (error) {
    return `its start could not be recorded: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function waitForEnd(child: ChildProcess): Promise<Pick<CommandEnd, 'exitCode' | 'problem'>> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ exitCode: null, problem: `it could not be started: ${error.message}` }));
    child.once('close', (code) => resolve({ exitCode: code, problem: null }));
  });
}

function judge(
  step: SealedStep,
  end: CommandEnd,
  { clean, closed }: { readonly clean: boolean; readonly closed: boolean },
): Pick<StepResult, 'outcome' | 'problem'> {
  if (!clean)
    return { outcome: 'failed', problem: 'not all of its processes could be ended, so nothing else is run here' };
  if (end.cause === 'unrecorded') return { outcome: 'failed', problem: end.problem };
  if (end.cause === 'interrupted') return { outcome: 'interrupted', problem: 'it was ended with the plan' };
  if (end.cause === 'timed_out')
    return { outcome: 'timed_out', problem: `it was ended after ${step.timeout_seconds} s` };
  if (!closed) return { outcome: 'failed', problem: 'its scope could not be closed, so nothing else is run here' };
  return { outcome: end.exitCode === 0 ? 'done' : 'failed', problem: end.problem };
}
