import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Option, type Command } from 'commander';
import { DEFAULT_CONTROL_PORT, DEFAULT_PROXY_PORT, parseRegistryUrl } from '../../shared/model/settings.ts';
import { controlUrlOf } from '../clients.ts';
import { handle, collectValue, type Call, type CommandLine } from '../command_line.ts';
import { settingsOf } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { typedProgram } from '../own_program.ts';
import { homeOf, prepareHome } from './home.ts';
import { ensureLocalKey } from '../sign_in/local_key.ts';
import { readSignIn } from '../sign_in/sign_in_file.ts';
import { backgroundArgs, backgroundNotice, IN_BACKGROUND_FLAG, startInBackground } from './background.ts';
import { readEndpoints, removeLeftContainers } from './left_containers.ts';
import { endSessions, findLiveSessions, removeSavedSessions } from './live_sessions.ts';
import { type StopKind, waitForStop } from './stop_question.ts';
import { Supervisor } from './supervisor.ts';
import { announce } from './up_announce.ts';
import { unlockedCall } from '../vault/vault_unlock.ts';
import { UpLock } from './up_lock.ts';
import { controlProgram, parsePort, requireFreePort, sidecarProgram } from './up_programs.ts';

const IPV4 = '127.0.0.1';
/** Browsers try it first for the console's name. */
const IPV6 = '::1';

/** The options of a sidecar about its upstreams. */
export interface UpstreamOptions {
  readonly upstreamCa?: readonly string[];
  readonly resolve?: readonly string[];
  readonly denyPrivateUpstreams?: boolean;
}
type SidecarOptions = UpstreamOptions & { readonly proxyPort: string };
type UpOptions = SidecarOptions & {
  readonly controlPort: string;
  readonly registryUrl?: string;
  readonly detach?: boolean;
  readonly inBackground?: boolean;
};

/** `svc up` and `svc sidecar`. */
export function addUpCommands(line: CommandLine): void {
  const up = line.program
    .command('up')
    .description(
      'start the control plane and the sidecar on this machine, until Ctrl-C (`npm start`), or in the background with --detach',
    )
    .option('--control-port <port>', 'port of the control plane; 0 means any free port', String(DEFAULT_CONTROL_PORT))
    .option('--registry-url <url>', 'MCP registry for the marketplace, instead of the public one')
    .option('--detach', 'return when both programs are healthy and leave them running; `svc down` stops them')
    .addOption(new Option(IN_BACKGROUND_FLAG).hideHelp());
  handle<UpOptions>(line, sidecarOptions(up), startEverything);
  const sidecar = line.program
    .command('sidecar')
    .description('start only the sidecar, for the control plane that `svc login` signed in to');
  handle<SidecarOptions>(line, sidecarOptions(sidecar), startSidecar);
}

function sidecarOptions(command: Command): Command {
  return withUpstreamOptions(
    command.option('--proxy-port <port>', 'port of the sidecar; 0 means any free port', String(DEFAULT_PROXY_PORT)),
  );
}

/** Adds {@link UpstreamOptions}. */
export function withUpstreamOptions(command: Command): Command {
  return command
    .option('--upstream-ca <file>', 'PEM file with extra root certificates for upstreams (repeatable)', collectValue)
    .option(
      '--resolve <host[:port]:address[:port]>',
      'connect to this address for a host; its certificate is still verified; http://HOST:ADDRESS is for plain http (repeatable)',
      collectValue,
    )
    .option('--deny-private-upstreams', 'refuse host names that resolve to private addresses');
}

async function startEverything(asked: Call<UpOptions>): Promise<number> {
  refuseSignedIn(homeOf(asked.context, asked.options));
  // Before anything starts, because a program in the background cannot ask.
  const isUp = UpLock.readRunning(homeOf(asked.context, asked.options)) !== null;
  const call = isUp ? asked : await unlockedCall(asked);
  const { context, options } = call;
  const controlPort = parsePort(options.controlPort, '--control-port');
  const start = prepareOptions(call);
  const registryUrl = registryUrlOf(options);
  if (options.detach === true) {
    await startInBackground(call, start.home, backgroundArgs({ ...start, controlPort, registryUrl }));
    return EXIT.ok;
  }
  return supervise(
    call,
    async (supervisor) => {
      await requireFreePort(controlPort, '--control-port');
      await requireFreePort(start.port, '--proxy-port');
      const heldControl = supervisor.holdPort(controlPort, [IPV4, IPV6]);
      const heldProxy = supervisor.holdPort(start.port, [IPV4]);
      const key = ensureLocalKey(start.home);
      const control = await supervisor.start(
        controlProgram(context, {
          ...start,
          registryUrl,
          command: [typedProgram(context), ...(options.home === undefined ? [] : ['--home', start.home])],
          held: heldControl,
          log: supervisor.openLog('control'),
        }),
      );
      const sidecar = await supervisor.start(
        sidecarProgram(context, {
          ...start,
          held: heldProxy,
          controlUrl: control.url,
          log: supervisor.openLog('sidecar'),
        }),
      );
      supervisor.publish({ controlUrl: control.url, proxyUrl: sidecar.url, control, sidecar });
      // The process that started this one in the background prints it: a sign-in link must not be in a log.
      if (options.inBackground === true) return;
      const { home } = start;
      await announce(call, { home, controlUrl: control.url, proxyUrl: sidecar.url, key, inBackground: false });
    },
    options.inBackground === true,
  );
}

function registryUrlOf(options: UpOptions): string | null {
  if (options.registryUrl === undefined) return null;
  const url = parseRegistryUrl(options.registryUrl);
  if (url.ok) return url.value;
  throw new CliError(EXIT.usage, `--registry-url ${url.error}`);
}

/** A state directory belongs to one control plane: refuses one whose sidecar is enrolled elsewhere. */
function refuseSignedIn(home: string): void {
  const signIn = readSignIn(home);
  if (signIn === null) return;
  throw new CliError(EXIT.failed, `${home} is signed in to ${signIn.control_url}`, [
    'Start its sidecar with "svc sidecar", or use another state directory with --home DIR.',
  ]);
}

async function startSidecar(call: Call<SidecarOptions>): Promise<number> {
  const { context } = call;
  const start = prepareOptions(call);
  const controlUrl = controlUrlOf(context, call.options);
  return supervise(call, async (supervisor) => {
    await requireFreePort(start.port, '--proxy-port');
    const held = supervisor.holdPort(start.port, [IPV4]);
    const sidecar = await supervisor.start(
      sidecarProgram(context, { ...start, held, controlUrl, log: supervisor.openLog('sidecar') }),
    );
    supervisor.publish({ controlUrl, proxyUrl: sidecar.url, control: null, sidecar });
    call.print.line(
      { proxy_url: sidecar.url, control_url: controlUrl, home: start.home },
      `the sidecar listens on ${sidecar.url}, for ${controlUrl}; Ctrl-C stops it`,
    );
  });
}

/** Reads and checks the command line and the environment before anything is changed. */
export function prepareOptions(call: Call<SidecarOptions>) {
  const { context, options } = call;
  const settings = settingsOf(context);
  const upstreamCa = (options.upstreamCa ?? []).map((file) => resolve(context.workingDirectory, file));
  const missing = [...upstreamCa, ...settings.upstreamCaFiles].find((file) => !existsSync(file));
  if (missing !== undefined) throw new CliError(EXIT.usage, `--upstream-ca: the file ${missing} does not exist`);
  return {
    home: homeOf(context, options),
    port: parsePort(options.proxyPort, '--proxy-port'),
    upstreamCa,
    resolve: options.resolve ?? [],
    denyPrivateUpstreams: options.denyPrivateUpstreams === true,
  };
}

/** How long a stop waits for the list of sessions, and then for their end. */
const LIST_MS = 2_000;
const END_MS = 5_000;

async function endLiveSessions(call: Call, notice: (text: string) => void): Promise<void> {
  const live = await findLiveSessions(call, AbortSignal.timeout(LIST_MS));
  for (const { id, why } of await endSessions(call, live, END_MS)) notice(`${id} could not be ended in time: ${why}`);
}

/** Starts the programs, waits for Ctrl-C or SIGTERM, and stops them, also if the start fails halfway. */
async function supervise(
  call: Call,
  start: (supervisor: Supervisor) => Promise<void>,
  inBackground = false,
): Promise<number> {
  const { context, print } = call;
  const home = homeOf(context, call.options);
  const changes = prepareHome(home, process.getuid?.());
  const notice = inBackground ? backgroundNotice(context, home) : (text: string) => print.note(`svc: ${text}`);
  for (const text of changes) notice(text);
  const supervisor = await Supervisor.open(context, home, notice);
  let kind: StopKind = 'keep_sessions';
  try {
    await start(supervisor);
    kind = await waitForStop(call);
    if (inBackground || !print.json) notice('stopping');
    if (kind === 'end_sessions') await endLiveSessions(call, notice);
    return EXIT.ok;
  } finally {
    await supervisor.stop(async () => {
      if (kind !== 'end_sessions') return;
      removeSavedSessions(home);
      const { problems } = await removeLeftContainers(context.env, home, readEndpoints(home));
      for (const problem of problems) notice(problem);
    });
  }
}
