import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { ownReleases, UNSEALED_EVENT } from '../../shared/report/sealability.ts';
import { readAuditEventsPage } from '../../shared/wire/audit_events.ts';
import { discardedLogins } from '../../shared/wire/pending_logins.ts';
import { identify, isSurelyRunning, type ProcessIdentity } from '../../machine/process_identity.ts';
import { listRunningServers } from '../../machine/process_records.ts';
import { hasHomes } from '../agents/agent_homes.ts';
import { controlClient, findRunning } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { listAllConnectors } from '../connectors/connector_lookup.ts';
import { revokeAtProvider, type Revoked } from '../connectors/revoke_tokens.ts';
import { listSessions, type SessionRecord } from '../launch/session_list.ts';
import { readSignIn } from '../sign_in/sign_in_file.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { stopSvc } from '../up/down_command.ts';
import { homeOf, requireOwnHome } from '../up/home.ts';
import { findLaunchers, FrozenProcesses, namesLauncher, type EndedProcesses } from '../launch/launcher_processes.ts';
import { readEndpoints, removeLeftContainers } from '../up/left_containers.ts';
import { endSessions, removeSavedSessions } from '../up/live_sessions.ts';
import { deleteSidecarKeys, ownSidecar, revokeSidecar } from '../up/own_sidecar.ts';
import { readRunFile, type RunFile } from '../up/run_file.ts';
import { managerOf } from '../service/service_commands.ts';
import { isInstalled } from '../service/service_manager.ts';
import { listSessionFolders } from '../up/session_folders.ts';
import { requireAgreement } from '../up/stop_question.ts';
import { UpLock } from '../up/up_lock.ts';

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
    .option('--yes', 'do not ask first');
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
  /** Connectors whose tokens their providers have revoked. */
  readonly tokens_revoked: readonly string[];
  /** What is to be known of those whose providers name no way to revoke them. */
  readonly tokens_left: readonly string[];
  /** Logins that waited, and were deleted with their tokens. */
  readonly logins_deleted: readonly string[];
  readonly service_removed: string | null;
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

/** Does a part of the work. Null if it failed, which is noted with `what`. */
type Step = <T>(what: string, work: () => T | Promise<T>) => Promise<T | null>;

const QUESTION = "End every session and its programs, revoke this machine's sidecar and stop svc?";
const SIDECAR_UNKNOWN =
  'the sidecar was not revoked, because its id is not known: find it with "svc api GET /v1/sidecars", then use "svc api DELETE /v1/sidecars/ID"';
const CALL_MS = 5_000;
const RELEASES_MS = 10_000;
/** A refresh that runs is waited for, and then the provider. */
const TOKENS_MS = 20_000;
/** The supervisor gives each of its two programs five seconds. What has not ended then is killed. */
const STOP_MS = 15_000;

/**
 * Every step is tried, whatever became of the others. First what takes effect at once (programs are stopped, the sessions'
 * tunnels close, the control plane releases nothing more), then what takes time.
 */
async function stopAtOnce(call: Call<PanicOptions>): Promise<number> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  requireOwnHome(home, process.getuid?.());
  await requireAgreement(call, { yes: options.yes === true, facts: [`State directory: ${home}`], question: QUESTION });
  const notDone = existsSync(home)
    ? []
    : [`${home} does not exist: name the state directory of your svc with --home DIR`];
  const step: Step = (what, work) => attempt(work, notDone, what);
  await step('named pipes in the state directory could not be removed', () => removePipes(home));
  const programs = (await step('the programs of svc are not known', () => UpLock.readPrograms(home))) ?? [];
  const named = (await step('the running programs are not known', () => readRunFile(home))) ?? null;
  const endpoints = (await step('the container engines are not known', () => readEndpoints(home))) ?? [];
  const processes = await freezeSaved(step, home, programs);
  const sidecarId = (await step("this machine's sidecar is not known", () => ownSidecar(home))) ?? null;
  if (sidecarId === null && isEnrolled(home, programs)) notDone.push(SIDECAR_UNKNOWN);
  const releases = findReleases(call, sidecarId);
  const [isRevoked, tokens, loginsDeleted, sessionsEnded] = await Promise.all([
    revoke(call, sidecarId, notDone),
    step('the tokens of connectors could not be revoked', () => revokeTokens(call)),
    step('the logins that wait could not be deleted', () => deleteLogins(call)),
    step('the live sessions could not be ended', () => endAllSessions(call, { home, processes, programs, notDone })),
  ]);
  const killed = await step('the launchers could not be killed', () => processes.kill());
  notDone.push(...processProblems(killed), ...tokensLeft(tokens ?? [], 'failed'));
  const unsealed = await releases;
  const service = await step('the service could not be removed, so svc may start again', () => removeService(call));
  const wasStopped = await step('svc did not stop by itself', () => stopSvc(withDeadline(call), home));
  const forced = await killPrograms(step, programs);
  const stillThere = [...processProblems(forced), ...stillNamed(named)];
  notDone.push(...stillThere);
  await deleteKeys(step, home, context.now());
  const containers = await step('the containers could not be removed', () =>
    removeLeftContainers(context.env, home, endpoints),
  );
  notDone.push(...(containers?.problems ?? []));
  const start = await step('the sign-in cannot be read', () => startAgain(home, service !== null));
  const report: Report = {
    home,
    sessions_ended: sessionsEnded ?? [],
    processes_ended: killed?.ended ?? [],
    containers_removed: containers?.removed ?? [],
    sidecar_id: sidecarId,
    sidecar_revoked: isRevoked,
    tokens_revoked: (tokens ?? []).flatMap(({ fqn, outcome }) => (outcome === 'revoked' ? [fqn] : [])),
    tokens_left: tokensLeft(tokens ?? [], 'not_named'),
    logins_deleted: loginsDeleted ?? [],
    service_removed: service,
    stopped: stillThere.length === 0 && (wasStopped === true || (forced?.ended.length ?? 0) > 0),
    unsealed,
    not_done: notDone,
    start_again: start ?? 'svc up',
  };
  print.data(report, () => reportText(report, stillThere.length > 0));
  if (hasHomes(home))
    print.note('Agents may have written credentials into their homes in containers: svc agents homes');
  return notDone.length === 0 ? EXIT.ok : EXIT.failed;
}

function withDeadline(call: Call): Call {
  const stop = AbortSignal.any([call.context.stop, AbortSignal.timeout(STOP_MS)]);
  return { ...call, context: { ...call.context, stop } };
}

/** A named pipe in place of a file would block whoever reads it. */
function removePipes(home: string): void {
  const known = ['up.lock', 'run.json', 'sign_in.json', 'local.key', 'sidecar/identity.json', 'sidecar/host.token'];
  for (const name of known) removePipe(join(home, name));
  const records = join(home, 'mcp', 'running');
  if (existsSync(records)) for (const name of readdirSync(records)) removePipe(join(records, name));
}

function removePipe(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFIFO() === true) rmSync(path, { force: true });
}

/** Stops the launchers and MCP servers that files name, with everything below them. */
async function freezeSaved(step: Step, home: string, programs: readonly ProcessIdentity[]): Promise<FrozenProcesses> {
  const processes = new FrozenProcesses();
  await step('the launchers could not be stopped', () => {
    const sessionIds = listSessionFolders(home).map(({ id }) => id);
    processes.freeze({ roots: findLaunchers(home), sessionIds, spared: programs });
  });
  await step('the MCP servers could not be stopped', () => {
    const roots = listRunningServers(join(home, 'mcp'));
    processes.freeze({ roots, sessionIds: [], spared: programs });
  });
  return processes;
}

/** Kills the programs of svc that still run. */
async function killPrograms(step: Step, programs: readonly ProcessIdentity[]): Promise<EndedProcesses | null> {
  const rest = new FrozenProcesses();
  await step('the programs of svc could not be stopped', () =>
    rest.freeze({ roots: programs, sessionIds: [], spared: [] }),
  );
  return step('the programs of svc could not be killed', () => rest.kill());
}

async function deleteKeys(step: Step, home: string, now: number): Promise<void> {
  await step('the saved sessions could not be deleted', () => removeSavedSessions(home));
  await step("the sidecar's keys could not be deleted", () => deleteSidecarKeys(home, now));
  await step('the local keys could not be deleted', () => deleteLocalKeys(home));
}

/** Whether there may be a sidecar at the control plane although its identity is missing here. */
function isEnrolled(home: string, programs: readonly ProcessIdentity[]): boolean {
  return programs.length > 0 || existsSync(join(home, 'sidecar', 'host.token'));
}

function deleteLocalKeys(home: string): void {
  for (const name of ['local.key', join('sidecar', 'host.token')]) rmSync(join(home, name), { force: true });
}

/** Otherwise the next sign-in would start svc again. Returns the file that was removed. */
function removeService(call: Call): string | null {
  const manager = managerOf(call);
  if (!isInstalled(manager)) return null;
  manager.uninstall();
  return manager.path;
}

/** Programs that run.json names and that still run. It has no start times, so nothing is killed because of it. */
function stillNamed(named: RunFile | null): readonly string[] {
  const pids = [named?.sidecar_pid ?? null, named?.control_pid ?? null].filter((pid) => pid !== null);
  const running = pids.filter((pid) => pid > 1 && pid !== process.pid && identify(pid) !== null);
  return running.map((pid) => `process ${pid}, which run.json names, still runs: if it is svc, kill -9 ${pid}`);
}

async function attempt<T>(work: () => T | Promise<T>, notDone: string[], what: string): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    notDone.push(`${what}: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  }
}

/** Asks the sidecar for its live sessions, stops their launchers, which no file may name, and ends them. */
async function endAllSessions(
  call: Call,
  { home, processes, programs, notDone }: SessionsToEnd,
): Promise<readonly string[]> {
  const live = await findLive(call, notDone);
  const listed = live ?? [];
  const sessionIds = listed.map(({ session_id: id }) => id);
  const roots = listed.flatMap(({ owner }) => (owner && isSurelyRunning(owner) ? [owner] : []));
  processes.freeze({ roots, sessionIds, spared: programs });
  const lost =
    live === null ? foldersWithoutLauncher(home) : listed.filter(hasNoLauncher).map((each) => each.session_id);
  notDone.push(...lost.map((id) => `the launcher of session ${id} was not found: look for its programs yourself`));
  const failed = await endSessions(call, listed, CALL_MS);
  notDone.push(...failed.map(({ id, why }) => `session ${id} was not ended by the sidecar: ${why}`));
  return sessionIds.filter((id) => !failed.some((each) => each.id === id));
}

interface SessionsToEnd {
  readonly home: string;
  readonly processes: FrozenProcesses;
  readonly programs: readonly ProcessIdentity[];
  readonly notDone: string[];
}

/** Null if the sidecar did not say; that is noted if one runs. */
async function findLive(call: Call, notDone: string[]): Promise<readonly SessionRecord[] | null> {
  if (findRunning(homeOf(call.context, call.options)) === null) return null;
  const list = (): Promise<readonly SessionRecord[]> => listSessions(call, AbortSignal.timeout(CALL_MS));
  const all = await attempt(list, notDone, 'the live sessions are not known');
  return all?.filter(({ state }) => state === 'live') ?? null;
}

/** A session in a container ends with its container. */
function hasNoLauncher({ sandbox, owner }: SessionRecord): boolean {
  return (sandbox ?? null) === null && !(owner && isSurelyRunning(owner));
}

function foldersWithoutLauncher(home: string): readonly string[] {
  const folders = listSessionFolders(home).filter(({ path }) => !existsSync(join(path, 'container.json')));
  return folders.filter(({ path }) => !namesLauncher(path)).map(({ id }) => id);
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

/** Has the tokens of the person's own connectors revoked at their providers, which also ends what other machines hold. */
async function revokeTokens({ context, options }: Call): Promise<readonly Revoked[]> {
  if (isAway({ context, options })) return [];
  const client = controlClient(context, options);
  const signal = AbortSignal.timeout(TOKENS_MS);
  const connectors = await listAllConnectors(client, 'personal');
  const all = await Promise.all(connectors.map((connector) => revokeAtProvider(client, connector, signal)));
  return all.filter((each) => each !== null);
}

function tokensLeft(tokens: readonly Revoked[], which: Revoked['outcome']): readonly string[] {
  return tokens.flatMap(({ outcome, left }) => (outcome === which && left !== null ? [left] : []));
}

/** Deletes the logins that wait for a person, whose command has just been ended. */
async function deleteLogins({ context, options }: Call): Promise<readonly string[]> {
  if (isAway({ context, options })) return [];
  const signal = AbortSignal.timeout(CALL_MS);
  const client = controlClient(context, options);
  try {
    return (await client.call('DELETE', '/v1/pending-logins', discardedLogins, { signal })).discarded;
  } catch (error) {
    // An older control plane deletes them by itself, within half an hour.
    if (error instanceof CliError && error.apiCode === 'method_not_allowed') return [];
    throw error;
  }
}

/** Neither svc runs here, nor is somebody signed in elsewhere: nobody can be asked. */
function isAway({ context, options }: Pick<Call, 'context' | 'options'>): boolean {
  const home = homeOf(context, options);
  return findRunning(home) === null && readSignIn(home) === null;
}

/** Credentials that this machine's sidecar has handed out in plaintext, newest first. */
async function findReleases({ context, options }: Call, sidecarId: string | null): Promise<readonly Release[] | null> {
  if (sidecarId === null) return null;
  try {
    const query = { type: UNSEALED_EVENT };
    const client = controlClient(context, options);
    const signal = AbortSignal.timeout(RELEASES_MS);
    const events = await fetchAllPages(client, '/v1/audit-events', readAuditEventsPage, query, { signal });
    return ownReleases(events, [sidecarId]).map(({ ref, host, session_id, time }) => ({ ref, host, session_id, time }));
  } catch {
    // Whatever the reason is, the report says that they are not known.
    return null;
  }
}

function processProblems(ended: EndedProcesses | null): readonly string[] {
  if (ended === null) return [];
  const { left, above } = ended;
  return [
    ...left.map((pid) => `process ${pid} could not be ended: kill -9 ${pid}`),
    ...above.map((pid) => `process ${pid} was not ended, because this command runs below it: end it yourself`),
  ];
}

function startAgain(home: string, hadService: boolean): string {
  const signIn = readSignIn(home);
  if (signIn === null && hadService) return 'svc service install';
  return signIn === null ? 'svc up' : `svc login --control ${signIn.control_url}`;
}

function reportText(report: Report, isLeft: boolean): string {
  const { unsealed, not_done: notDone, sidecar_id: sidecarId } = report;
  const lines = [
    `sessions ended: ${report.sessions_ended.length === 0 ? 'none' : report.sessions_ended.join(', ')}`,
    `processes ended: ${report.processes_ended.length === 0 ? 'none' : report.processes_ended.join(', ')}`,
    ...report.containers_removed.map((id) => `container removed: ${id.slice(0, 12)}`),
    ...(report.sidecar_revoked ? [`sidecar revoked: ${sidecarId}`] : []),
    ...report.tokens_revoked.map((fqn) => `tokens revoked at their provider: ${fqn}`),
    ...(report.logins_deleted.length === 0 ? [] : [`logins that waited, deleted: ${report.logins_deleted.length}`]),
    ...(report.service_removed === null ? [] : [`service removed: ${report.service_removed}`]),
    stopLine(report, isLeft),
    ...(notDone.length === 0 ? [] : ['', 'Not done:', ...notDone.map((each) => `  ${each}`)]),
    '',
    'What may still be out:',
    ...releaseLines(unsealed),
    ...report.tokens_left.map((text) => `  ${text}.`),
    '  Requests that were already sent cannot be called back.',
    '  Every credential stays valid at its service. Replace there what you no longer trust, then store it with "svc secret set".',
    '',
    `To start again: ${report.start_again}`,
  ];
  return `${lines.map(toPrintable).join('\n')}\n`;
}

function stopLine({ home, stopped }: Report, isLeft: boolean): string {
  if (isLeft) return `svc was not stopped on ${home}`;
  return stopped ? `svc stopped on ${home}` : `svc was not running on ${home}`;
}

function releaseLines(unsealed: Report['unsealed']): readonly string[] {
  if (unsealed === null) {
    return ['  Credentials that were handed out in plaintext are not known: see "svc report sealability" later.'];
  }
  return unsealed.map(({ ref, host, time }) => {
    return `  ${ref} was handed out in plaintext at ${time}${host === null ? '' : ` for ${host}`}: replace it at its service.`;
  });
}
