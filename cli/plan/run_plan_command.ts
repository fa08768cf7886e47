import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { PlanLockPayload, SealedStep } from '../../shared/wire/plan/plan_lock.ts';
import { nearMatch } from '../../shared/model/near_match.ts';
import type { BindMount, ContainerRuntime } from '../../sandbox/engine/container_runtime.ts';
import { engineProgramAt } from '../../sandbox/engine/engine_cli.ts';
import { LaunchError } from '../../sandbox/launch/launch_error.ts';
import type { PlanEgress } from '../../shared/model/egress.ts';
import { checkMounts } from '../../sandbox/launch/mount_policy.ts';
import type { PlanPorts } from '../../sandbox/plan/plan_ports.ts';
import { INTERRUPTED_EXIT, runPlan, type PlanEnd, type PlanRun } from '../../sandbox/plan/run_plan.ts';
import { identify } from '../../machine/process_identity.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from '../up/home.ts';
import { warnOfFolderFile } from '../launch/chosen_secrets.ts';
import { mountPolicyOf } from '../launch/mount_checks.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { checkCredentials } from './plan_credentials.ts';
import { engineOf, imageCheck, planImage, verificationText, verifyFiles } from './plan_engine.ts';
import { planPaths } from './plan_files.ts';
import { printPlanEnd } from './plan_report.ts';
import { planSessions } from './plan_sessions.ts';
import { sandboxSessions } from '../launch/sandbox_sessions.ts';

export interface PlanRunOptions {
  readonly egress: PlanEgress;
  readonly step?: readonly string[];
  readonly output?: string;
  readonly keepGoing?: boolean;
  readonly keep?: boolean;
}

/** How much longer than its steps a session may last: for start, sweeps and outputs. */
const SPARE_SECONDS = 3600;
const MAX_IDLE_MS = 60_000;
const MAX_SESSION_SECONDS = 30 * 24 * 3600;

/** `svc plan run`: verifies, runs and reports; returns the exit code. */
export async function runPlanCommand(call: Call<PlanRunOptions>): Promise<number> {
  const { lock, jws } = await verifyLock(call);
  const steps = selectSteps(call.options.step ?? [], lock.steps);
  await warnOfFolderFile(call, 'a step of a plan uses the account of its "credential"');
  const runtime = await engineOf(call);
  const { check } = await imageCheck(runtime, lock);
  if (!check.holds) throw changedPlanError(call, verificationText([check], call.print));
  const run = await planRun(call, { lock, jws, steps, runtime });
  await checkCredentials(call, steps);
  try {
    const end = await runPlan(planPorts(call, runtime), run);
    await printPlanEnd(call, run, end);
    return exitOf(end);
  } catch (error) {
    if (!(error instanceof LaunchError)) throw error;
    throw new CliError(error.exitCode ?? EXIT.notStarted, toPrintable(error.message), error.fixes.map(toPrintable));
  }
}

function exitOf(end: PlanEnd): number {
  if (end.interrupted) return INTERRUPTED_EXIT;
  return end.results.every(({ outcome }) => outcome === 'done') ? EXIT.ok : EXIT.failed;
}

/** The content that the signature covers; from here on, nothing else of the files is used. */
async function verifyLock(call: Call): Promise<{ readonly lock: PlanLockPayload; readonly jws: string }> {
  const { checks, lock } = await verifyFiles(call);
  if (lock === null) throw changedPlanError(call, verificationText(checks, call.print));
  return { lock: lock.payload, jws: lock.jws };
}

function changedPlanError(call: Call, text: string): CliError {
  const { plan } = planPaths(call);
  const lines = text.split('\n').filter((line) => line.startsWith('\t'));
  return new CliError(EXIT.notStarted, 'the plan was changed after it was frozen; nothing was run:', [
    ...lines.map((line) => line.trim()),
    `Review the changes, then run: svc plan freeze ${plan}`,
  ]);
}

function selectSteps(ids: readonly string[], steps: readonly SealedStep[]): readonly SealedStep[] {
  const known = steps.map(({ id }) => id);
  for (const id of ids.filter((one) => !known.includes(one))) {
    const near = nearMatch(id, known);
    const hint = near === null ? `it has ${known.join(', ')}` : `did you mean ${near}?`;
    throw new CliError(EXIT.usage, `--step ${JSON.stringify(id)}: the plan has no such step; ${hint}`);
  }
  return ids.length === 0 ? steps : steps.filter(({ id }) => ids.includes(id));
}

interface Verified {
  readonly lock: PlanLockPayload;
  readonly jws: string;
  readonly steps: readonly SealedStep[];
  readonly runtime: ContainerRuntime;
}

async function planRun(call: Call<PlanRunOptions>, { lock, jws, steps, runtime }: Verified): Promise<PlanRun> {
  const { egress, keep, keepGoing } = call.options;
  const home = homeOf(call.context, call.options);
  const mounts = planMounts(call, lock, runtime.endpoint);
  const outputFolder = outputsOf(call, steps);
  const image = await planImage(call, runtime, lock.image.id);
  if (!image.ok) {
    await sandboxSessions(call).recordDisabled('preflight_failed', 'docker', lock.image.name);
    throw new CliError(EXIT.notStarted, toPrintable(image.error.message), image.error.fixes.map(toPrintable));
  }
  const seconds = steps.reduce((sum, step) => sum + step.timeout_seconds, SPARE_SECONDS);
  const address = { program: runtime.program, endpoint: runtime.endpoint };
  return {
    lock,
    steps,
    session: {
      name: `plan ${lock.name}`,
      ttlSeconds: Math.min(seconds, MAX_SESSION_SECONDS),
      owner: identify(process.pid),
      image: lock.image,
      runtime: address,
      egress,
      lock: jws,
    },
    boot: { home, image: image.value, egress, mounts },
    outputFolder,
    keepGoing: keepGoing === true,
    beforeEnd: (containerId) => (keep === true ? waitForEnter(call, containerId) : Promise.resolve()),
  };
}

/** Keeps the container after the steps: their processes have ended and no scope is open. */
function waitForEnter({ context, print }: Call, containerId: string): Promise<void> {
  print.note(`the container is kept until Ctrl-C. To inspect it: docker exec -it ${containerId.slice(0, 12)} sh`);
  return new Promise((over) => {
    // A signal handler alone does not keep the process running.
    const alive = setInterval(() => undefined, MAX_IDLE_MS);
    const end = (): void => {
      clearInterval(alive);
      over();
    };
    context.stop.addEventListener('abort', end, { once: true });
    if (context.stop.aborted) end();
  });
}

/** The mounts of all steps, without duplicates, since the steps share one container. Sources are relative to the plan. */
function planMounts(call: Call, lock: PlanLockPayload, endpoint: string): readonly BindMount[] {
  const { context } = call;
  const all = new Map(lock.steps.flatMap(({ mounts }) => mounts.map((mount) => [mount.target, mount] as const)));
  const wanted = [...all.values()].map(({ source, target, access }) => ({
    source,
    target,
    readOnly: access === 'read',
  }));
  const folder = dirname(resolve(context.workingDirectory, planPaths(call).plan));
  const checked = checkMounts(wanted, mountPolicyOf(context, call.options, endpoint, folder));
  if (checked.ok) return checked.value;
  throw new CliError(EXIT.notStarted, `mounts: ${toPrintable(checked.error)}`);
}

/** The output folder. An existing folder of a step is refused before anything runs, since outputs would mix. */
function outputsOf(call: Call<PlanRunOptions>, steps: readonly SealedStep[]): (sessionId: string) => string {
  const { output } = call.options;
  const from = call.context.workingDirectory;
  if (output === undefined) return (sessionId) => resolve(from, 'plan-output', sessionId);
  if (output === '') throw new CliError(EXIT.usage, '--output is empty: give a folder');
  const folder = resolve(from, output);
  const taken = steps.find(({ id, collect }) => collect.length > 0 && existsSync(join(folder, id)));
  if (taken === undefined) return () => folder;
  throw new CliError(EXIT.notStarted, `--output: ${join(output, taken.id)} already exists`, [
    'Remove it, or choose another folder.',
  ]);
}

function planPorts(call: Call, runtime: ContainerRuntime): PlanPorts {
  const { context, print } = call;
  const docker = engineProgramAt(context.env, runtime.endpoint);
  const never = new AbortController().signal;
  return {
    runtime,
    sessions: planSessions(call),
    archiveOf: (id, path) => docker.spawn(['cp', '--', `${id}:${path}`, '-'], { stdio: 'pipe' }),
    now: context.now,
    schedule: (ms, then) => {
      const timer = setTimeout(then, ms);
      return () => clearTimeout(timer);
    },
    pause: (ms) => context.pause(ms, never),
    stop: context.stop,
    // With --json, only the report goes to stdout.
    stdout: print.json ? context.stderr : context.stdout,
    stderr: context.stderr,
    progress: (text) => print.note(toPrintable(text)),
    warn: (text) => print.warn(toPrintable(text)),
    newSentinel: () => randomBytes(32).toString('base64url'),
  };
}
