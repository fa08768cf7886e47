import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { programFile } from '../../machine/program_file.ts';
import { SETTINGS } from '../../shared/model/settings.ts';
import { upstreamProxyVariables } from '../../shared/net/upstream_proxy.ts';
import { toShownJson } from '../../shared/model/shown_text.ts';
import { findRunning } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { LONGEST_STOP_MS, stillRunningError } from './down_command.ts';
import { prepareHome, readTokenFile } from './home.ts';
import { logFolder, prepareLog } from './log_files.ts';
import { readLastLines } from './logs_command.ts';
import { parseLastWords } from './node_program.ts';
import { RotatingLog } from './rotating_log.ts';
import type { RunFile } from './run_file.ts';
import { askControl, askSidecar } from './status_command.ts';
import { START_TIMEOUT_MS } from './supervised_program.ts';
import { alreadyRunning } from './supervisor.ts';
import { announce } from './up_announce.ts';
import { UpLock } from './up_lock.ts';

/** Marks the process that `svc up --detach` starts: it reports to its log and prints no sign-in link. */
export const IN_BACKGROUND_FLAG = '--in-background';

const LOOK_AGAIN_MS = 100;
const SAY_SO_AFTER_MS = 1_000;
/** Both programs have their own time to start, one after the other; this is for the process around them. */
const LONGEST_START_MS = 3 * START_TIMEOUT_MS;
/** For two programs that answer, but are not well yet. */
const LONGEST_DEGRADED_MS = 20_000;
const SHOWN_LINES = 5;

interface StartArgs {
  readonly home: string;
  readonly port: number;
  readonly controlPort: number;
  readonly upstreamCa: readonly string[];
  readonly resolve: readonly string[];
  readonly denyPrivateUpstreams: boolean;
  readonly registryUrl: string | null;
}

/** The arguments of the `svc up` that runs in the background. */
export function backgroundArgs(start: StartArgs): readonly string[] {
  return [
    'up',
    IN_BACKGROUND_FLAG,
    `--home=${start.home}`,
    `--control-port=${start.controlPort}`,
    `--proxy-port=${start.port}`,
    ...start.upstreamCa.map((file) => `--upstream-ca=${file}`),
    ...start.resolve.map((target) => `--resolve=${target}`),
    ...(start.denyPrivateUpstreams ? ['--deny-private-upstreams'] : []),
    ...(start.registryUrl === null ? [] : [`--registry-url=${start.registryUrl}`]),
  ];
}

/** Writes what the background process has to say as JSON lines to `logs/up.log`, which rotates. */
export function backgroundNotice(context: CliContext, home: string): (text: string) => void {
  const log = new RotatingLog(prepareLog(home, 'up'));
  return (message) => {
    const time = new Date(context.now()).toISOString();
    log.write(toShownJson(JSON.stringify({ time, level: 'info', message })));
  };
}

/**
 * Starts svc in a session of its own and returns when both programs are healthy. If svc runs already, it says so. If the start
 * fails or is interrupted, everything it started is ended and `CliError` has the cause.
 */
export async function startInBackground(call: Call, home: string, args: readonly string[]): Promise<void> {
  const run = await bringUp(call, home, args);
  const key = readTokenFile(join(home, 'local.key'));
  if (key === null) throw new CliError(EXIT.failed, `${join(home, 'local.key')} is missing`);
  const { control_url: controlUrl, proxy_url: proxyUrl } = run;
  await announce(call, { home, controlUrl, proxyUrl, key, inBackground: true });
}

/** The same, without printing where it listens. By default svc gets the caller's environment. */
export async function bringUp(
  call: Call,
  home: string,
  args: readonly string[],
  env: CliContext['env'] = call.context.env,
): Promise<RunFile> {
  for (const text of prepareHome(home, process.getuid?.())) call.print.note(`svc: ${text}`);
  const running = UpLock.readRunning(home);
  return running === null ? startAndWait(call, { home, args, env }) : joinRunning(call, home, running.supervisor.pid);
}

/** Programs that svc starts are found by PATH, and the container engine by DOCKER_HOST. */
export function carriedVariables({ env }: Pick<CliContext, 'env'>): Readonly<Record<string, string>> {
  const docker = env['DOCKER_HOST'];
  return { PATH: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin', ...(docker !== undefined && { DOCKER_HOST: docker }) };
}

/** What tells a program about its user, its machine and its engine. */
const OF_MACHINE =
  /^(?:HOME|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|XDG_\w+|DBUS_SESSION_BUS_ADDRESS|DOCKER_(?:HOST|CONTEXT|CONFIG|CERT_PATH|TLS|TLS_VERIFY|API_VERSION)|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR))$/;
/** svc's own settings; not the token of a session, which is in the environment of an agent. */
const OF_SVC: ReadonlySet<string> = new Set(SETTINGS.map(({ name }) => name));

/**
 * The environment of an svc that starts on the way of another command. It runs for days: the credentials of that command's
 * shell stay out of it.
 */
export function environmentOfSvc(context: Pick<CliContext, 'env'>): CliContext['env'] {
  const own = Object.entries(context.env).filter(([name]) => OF_SVC.has(name) || OF_MACHINE.test(name));
  return { ...Object.fromEntries(own), ...upstreamProxyVariables(context.env), ...carriedVariables(context) };
}

/** Waits for the svc that another command has started. */
async function joinRunning(call: Call, home: string, pid: number): Promise<RunFile> {
  call.print.note(`svc: already running on ${home} (process ${pid})`);
  const run = await waitUntilHealthy(call, home, { pid, hasEnded: () => UpLock.readRunning(home) === null });
  if (run === null || run.control_pid === null) throw alreadyRunning(home, pid);
  return run;
}

interface BackgroundStart {
  readonly home: string;
  readonly args: readonly string[];
  readonly env: CliContext['env'];
}

async function startAndWait(call: Call, { home, args, env }: BackgroundStart): Promise<RunFile> {
  const fd = openSync(prepareLog(home, 'up'), 'a+', 0o600);
  try {
    const before = fstatSync(fd).size;
    const child = spawnBackground(call.context, { args, env }, fd);
    // Without a listener, a child that cannot be started or signalled would end this process.
    child.on('error', () => {});
    const hasEnded = (): boolean => child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
    const run = await waitUntilHealthy(call, home, { pid: child.pid ?? 0, hasEnded });
    if (run !== null) {
      child.unref();
      return run;
    }
    const endedByItself = hasEnded();
    if (!endedByItself) await endStarted(child, home, call.context.pause);
    if (call.context.stop.aborted) throw new CliError(EXIT.failed, 'stopped before it was ready');
    const other = UpLock.readRunning(home);
    if (other !== null) return await joinRunning(call, home, other.supervisor.pid);
    throw endedByItself ? startError(child, home, readSaid(fd, before)) : notHealthyError(home);
  } finally {
    closeSync(fd);
  }
}

/** Ends the background process; throws `CliError` if it still runs after the time that `svc down` waits. */
export async function endStarted(child: StartedChild, home: string, pause: CliContext['pause']): Promise<void> {
  const ended = new AbortController();
  child.once('exit', () => ended.abort());
  child.kill('SIGTERM');
  await pause(LONGEST_STOP_MS, ended.signal);
  if (ended.signal.aborted) return;
  child.unref();
  throw stillRunningError(home, child.pid ?? 0);
}

interface StartedChild extends Pick<ChildProcess, 'pid' | 'unref'> {
  once(event: 'exit', listener: () => void): unknown;
  kill(signal: 'SIGTERM'): boolean;
}

function spawnBackground(context: CliContext, start: Pick<BackgroundStart, 'args' | 'env'>, fd: number): ChildProcess {
  const { FORCE_COLOR: _colour, ...env } = start.env;
  return spawn(process.execPath, [...process.execArgv, programFile('cli/main'), ...start.args], {
    cwd: context.workingDirectory,
    env,
    stdio: ['ignore', fd, fd],
    detached: true,
  });
}

/** The process that keeps the programs running. */
interface Supervising {
  readonly pid: number;
  readonly hasEnded: () => boolean;
}

/** Waits until both programs of that supervisor answer and are well; null if it ended, took too long or was interrupted. */
async function waitUntilHealthy(call: Call, home: string, { pid, hasEnded }: Supervising): Promise<RunFile | null> {
  const { context, print } = call;
  const { stop } = context;
  const began = context.now();
  let said: string | null = null;
  while (!hasEnded() && !stop.aborted) {
    const run = readRunOf(home, pid);
    if (run?.control_pid === null) return run;
    const state = run === null ? { waitsFor: 'the programs to start', answers: false } : await lookAtHealth(call, run);
    if (run !== null && state === null) return run;
    const waitedMs = context.now() - began;
    if (waitedMs >= (state?.answers === true ? LONGEST_DEGRADED_MS : LONGEST_START_MS)) {
      if (run === null || state?.answers !== true) return null;
      print.warn(`svc runs, but is not healthy yet (waiting for ${state.waitsFor}): look into it with "svc doctor"`);
      return run;
    }
    if (waitedMs >= SAY_SO_AFTER_MS && state !== null && said !== state.waitsFor) {
      said = state.waitsFor;
      print.note(`svc: waiting for ${said}`);
    }
    await context.pause(LOOK_AGAIN_MS, stop);
  }
  return null;
}

/** run.json, if this supervisor wrote it: one that was killed may have left its own behind. */
function readRunOf(home: string, pid: number): RunFile | null {
  const lock = UpLock.readRunning(home);
  const run = findRunning(home);
  if (run === null || lock?.supervisor.pid !== pid) return null;
  return lock.programs.some((program) => program.pid === run.sidecar_pid) ? run : null;
}

/** What is not healthy yet; null if everything is. */
async function lookAtHealth(
  call: Call,
  run: RunFile,
): Promise<{ readonly waitsFor: string; readonly answers: boolean } | null> {
  const here = { ...call, options: { ...call.options, control: run.control_url } };
  const [control, sidecar] = await Promise.all([askControl(here), askSidecar(here)]);
  const answers = control.ok && sidecar.ok;
  if (!control.ok || control.value.status !== 'ok') return { waitsFor: 'the control plane', answers };
  return sidecar.ok && sidecar.value.status === 'ok' ? null : { waitsFor: 'the sidecar', answers };
}

/** What the background process wrote since it started, without its JSON lines. */
function readSaid(fd: number, from: number): readonly string[] {
  const bytes = Buffer.alloc(Math.max(0, fstatSync(fd).size - from));
  const count = readSync(fd, bytes, 0, bytes.length, from);
  const lines = bytes.toString('utf8', 0, count).split('\n');
  return lines.filter((line) => line.trim() !== '' && !line.startsWith('{'));
}

/**
 * The background process prints its error as `svc up` does: `svc: PROBLEM`, then one line for each fix. An uncaught error is
 * printed by Node, with its stack.
 */
export function startError(
  child: Pick<ChildProcess, 'exitCode' | 'signalCode'>,
  home: string,
  said: readonly string[],
): CliError {
  const at = said.findIndex((line) => line.startsWith('svc: '));
  const [problem, ...fixes] = at < 0 ? [] : said.slice(at).map((line) => line.trim());
  if (problem !== undefined) return new CliError(EXIT.failed, problem.slice('svc: '.length), fixes);
  const end = child.signalCode === null ? `with exit status ${child.exitCode}` : `by ${child.signalCode}`;
  return new CliError(EXIT.failed, `svc was ended ${end} before it was ready`, [
    ...parseLastWords(said),
    `See ${logFolder(home)}.`,
  ]);
}

function notHealthyError(home: string): CliError {
  const lines = (['control', 'sidecar'] as const).flatMap((name) => readLastLines(home, name, SHOWN_LINES));
  return new CliError(EXIT.failed, 'svc did not become ready in time and was stopped', [
    ...lines,
    `See ${logFolder(home)}.`,
  ]);
}
