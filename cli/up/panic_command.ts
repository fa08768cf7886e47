import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { ownReleases, UNSEALED_EVENT } from '../../shared/report/sealability.ts';
import { auditEventsPage } from '../../shared/wire/audit_events.ts';
import { listRunningServers } from '../../machine/process_records.ts';
import { HOME_LABEL, homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import { dockerRuntime } from '../../sandbox/engine/docker_runtime.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readSignIn } from '../sign_in/sign_in_file.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { stopSvc } from './down_command.ts';
import { homeOf } from './home.ts';
import { endTrees, findLaunchers } from './launcher_processes.ts';
import { endSessions, findLiveSessions, removeSavedSessions } from './live_sessions.ts';
import { ownSidecar, retireSidecar, revokeSidecar } from './own_sidecar.ts';
import { requireAgreement } from './stop_question.ts';

interface PanicOptions {
  readonly yes?: boolean;
}

/** `svc panic`. */
export function addPanicCommand(line: CommandLine): void {
  const panic = line.program
    .command('panic')
    .description(
      "stop everything at once: end all sessions and their programs, revoke this machine's sidecar, stop svc, and say what may still be out",
    )
    .option('--yes', 'without asking');
  handle<PanicOptions>(line, panic, stopAtOnce);
}

/** The result, as `--json` prints it. */
interface Report {
  readonly home: string;
  readonly sessions_ended: readonly string[];
  readonly processes_ended: readonly number[];
  readonly containers_removed: readonly string[];
  readonly sidecar_id: string | null;
  readonly sidecar_revoked: boolean;
  readonly stopped: boolean;
  /** Credentials that were handed out in plaintext; null if the control plane did not answer. */
  readonly unsealed: readonly Release[] | null;
  /** What could not be done, and what to do about it. */
  readonly not_done: readonly string[];
  readonly start_again: string;
}

interface Release {
  readonly ref: string;
  readonly host: string | null;
  readonly session_id: string | null;
  readonly time: string;
}

const QUESTION = "End every session and its programs, revoke this machine's sidecar and stop svc?";
const CALL_MS = 5_000;

/**
 * Every step is tried, whatever became of the others. First what takes effect at once (the sessions' tunnels close, the
 * control plane releases nothing more), then what takes time.
 */
async function stopAtOnce(call: Call<PanicOptions>): Promise<number> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  await requireAgreement(call, { yes: options.yes === true, facts: [`State directory: ${home}`], question: QUESTION });
  const notDone: string[] = [];
  const launchers = findLaunchers(home);
  const endpoints = readEndpoints(home);
  const sessionsEnded = await endAllSessions(call, notDone);
  const sidecarId = await attempt(() => ownSidecar(home), notDone, "this machine's sidecar is not known");
  const isRevoked = await revoke(call, sidecarId, notDone);
  const unsealed = await findReleases(call, sidecarId);
  const processes = await endTrees([...launchers, ...listRunningServers(join(home, 'mcp'))]);
  notDone.push(...processProblems(processes));
  const isStopped = await attempt(() => stopSvc(call, home), notDone, 'svc could not be stopped');
  // Files that a running sidecar would write again stay until it has ended.
  if (isStopped !== null) {
    removeSavedSessions(home);
    await attempt(() => retireSidecar(null, home, context.now()), notDone, "the sidecar's keys could not be deleted");
  }
  const containers = await removeContainers(call, home, endpoints, notDone);
  const report: Report = {
    home,
    sessions_ended: sessionsEnded,
    processes_ended: processes.ended,
    containers_removed: containers,
    sidecar_id: sidecarId,
    sidecar_revoked: isRevoked,
    stopped: isStopped === true,
    unsealed,
    not_done: notDone,
    start_again: startAgain(home),
  };
  print.data(report, () => `${reportLines(report).map(toPrintable).join('\n')}\n`);
  return notDone.length === 0 ? EXIT.ok : EXIT.failed;
}

/** Null if it failed, which is noted. */
async function attempt<T>(work: () => Promise<T>, notDone: string[], what: string): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    notDone.push(`${what}: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  }
}

async function endAllSessions(call: Call, notDone: string[]): Promise<readonly string[]> {
  const live = await findLiveSessions(call);
  const failed = await endSessions(call, live, CALL_MS);
  notDone.push(...failed.map(({ id, why }) => `session ${id} was not ended by the sidecar: ${why}`));
  return live.map(({ session_id: id }) => id).filter((id) => !failed.some((each) => each.id === id));
}

async function revoke({ context, options }: Call, sidecarId: string | null, notDone: string[]): Promise<boolean> {
  if (sidecarId === null) return false;
  const what = `sidecar ${sidecarId} could not be revoked at the control plane; when it runs again, use "svc api DELETE /v1/sidecars/${sidecarId}"`;
  const revoked = await attempt(
    () => revokeSidecar(controlClient(context, options), sidecarId, CALL_MS),
    notDone,
    what,
  );
  return revoked !== null;
}

/** Credentials that this machine's sidecar has handed out in plaintext, newest first. */
async function findReleases({ context, options }: Call, sidecarId: string | null): Promise<readonly Release[] | null> {
  if (sidecarId === null) return null;
  try {
    const query = { type: UNSEALED_EVENT };
    const events = await fetchAllPages(controlClient(context, options), '/v1/audit-events', auditEventsPage, query);
    return ownReleases(events, [sidecarId]).map(({ ref, host, session_id, time }) => ({ ref, host, session_id, time }));
  } catch (error) {
    if (error instanceof CliError) return null;
    throw error;
  }
}

function processProblems({ left, above }: Awaited<ReturnType<typeof endTrees>>): readonly string[] {
  return [
    ...left.map((pid) => `process ${pid} could not be ended: kill -9 ${pid}`),
    ...above.map((pid) => `process ${pid} was not ended, because this command runs below it: end it yourself`),
  ];
}

const containerRecord = z.object({ endpoint: z.string().startsWith('unix:///') });

/** The container engines that the sessions' records name. */
function readEndpoints(home: string): readonly string[] {
  const directory = join(home, 'sessions');
  const files = (existsSync(directory) ? readdirSync(directory) : [])
    .map((name) => join(directory, name, 'container.json'))
    .filter((path) => existsSync(path));
  const found = files.map((path) => containerRecord.safeParse(parseJson(readFileSync(path, 'utf8'))).data?.endpoint);
  return [...new Set(found.filter((endpoint) => endpoint !== undefined))];
}

/** Removes what the sidecar did not remove. A container is touched only if its label names this state directory. */
async function removeContainers(
  { context }: Call,
  home: string,
  endpoints: readonly string[],
  notDone: string[],
): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const endpoint of endpoints) {
    const runtime = dockerRuntime(context.env, endpoint);
    const listed = await runtime.listByLabel(HOME_LABEL, homeLabelOf(home));
    if (!listed.ok) notDone.push(`the containers at ${endpoint} are not known: ${listed.error.message}`);
    const ours = listed.ok ? listed.value.filter((found) => found.home === homeLabelOf(home)) : [];
    for (const { id } of ours) {
      const outcome = await runtime.remove(id);
      if (outcome.ok) removed.push(id);
      else notDone.push(`container ${id.slice(0, 12)} could not be removed: ${outcome.error.message}`);
    }
  }
  return removed;
}

function startAgain(home: string): string {
  const signIn = readSignIn(home);
  return signIn === null ? 'svc up' : `svc login --control ${signIn.control_url}`;
}

function reportLines(report: Report): readonly string[] {
  const { unsealed, not_done: notDone, sidecar_id: sidecarId } = report;
  return [
    `sessions ended: ${report.sessions_ended.length === 0 ? 'none' : report.sessions_ended.join(', ')}`,
    `processes ended: ${report.processes_ended.length === 0 ? 'none' : report.processes_ended.join(', ')}`,
    ...report.containers_removed.map((id) => `container removed: ${id.slice(0, 12)}`),
    ...(report.sidecar_revoked ? [`sidecar revoked: ${sidecarId}`] : []),
    report.stopped ? `svc stopped on ${report.home}` : `svc was not running on ${report.home}`,
    ...(notDone.length === 0 ? [] : ['', 'Not done:', ...notDone.map((each) => `  ${each}`)]),
    '',
    'What may still be out:',
    ...releaseLines(unsealed),
    '  Requests that were already sent cannot be called back.',
    '  Every credential stays valid at its service. Replace there what you no longer trust, then store it with "svc secret set".',
    '',
    `To start again: ${report.start_again}`,
  ];
}

function releaseLines(unsealed: Report['unsealed']): readonly string[] {
  if (unsealed === null) {
    return ['  Credentials that were handed out in plaintext are not known: see "svc report sealability" later.'];
  }
  return unsealed.map(({ ref, host, time }) => {
    return `  ${ref} was handed out in plaintext at ${time}${host === null ? '' : ` for ${host}`}: replace it at its service.`;
  });
}
