import { existsSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { DEFAULT_CONTROL_PORT, DEFAULT_PROXY_PORT, parseRegistryUrl } from '../../shared/model/settings.ts';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { controlUrlOf } from '../clients.ts';
import { handle, collectValue, type Call, type CommandLine } from '../command_line.ts';
import { settingsOf, type CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from './home.ts';
import { httpClient } from '../terminal/http_client.ts';
import { ensureLocalKey } from '../sign_in/local_key.ts';
import { readSignIn } from '../sign_in/sign_in_file.ts';
import { Supervisor } from './supervisor.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import { formatGuide, type UpFacts } from './up_guide.ts';
import { controlProgram, parsePort, requireFreePort, sidecarProgram } from './up_programs.ts';

interface SidecarOptions {
  readonly proxyPort: string;
  readonly upstreamCa?: readonly string[];
  readonly resolve?: readonly string[];
  readonly denyPrivateUpstreams?: boolean;
}
type UpOptions = SidecarOptions & { readonly controlPort: string; readonly registryUrl?: string };

/** `svc up` and `svc sidecar`. */
export function addUpCommands(line: CommandLine): void {
  const up = line.program
    .command('up')
    .description('start the control plane and the sidecar on this machine, until Ctrl-C (`npm start`)')
    .option('--control-port <port>', 'port of the control plane; 0 means any free port', String(DEFAULT_CONTROL_PORT))
    .option('--registry-url <url>', 'MCP registry for the marketplace, instead of the public one');
  handle<UpOptions>(line, sidecarOptions(up), startEverything);
  const sidecar = line.program
    .command('sidecar')
    .description('start only the sidecar, for the control plane that `svc login` signed in to');
  handle<SidecarOptions>(line, sidecarOptions(sidecar), startSidecar);
}

function sidecarOptions(command: Command): Command {
  return command
    .option('--proxy-port <port>', 'port of the sidecar; 0 means any free port', String(DEFAULT_PROXY_PORT))
    .option('--upstream-ca <file>', 'PEM file with extra root certificates for upstreams (repeatable)', collectValue)
    .option(
      '--resolve <host:address[:port]>',
      'connect to this address for a host; its certificate is still verified (repeatable)',
      collectValue,
    )
    .option('--deny-private-upstreams', 'refuse host names that resolve to private addresses');
}

async function startEverything(call: Call<UpOptions>): Promise<number> {
  const { context, options } = call;
  refuseSignedIn(homeOf(context, options));
  const controlPort = parsePort(options.controlPort, '--control-port');
  const start = prepareOptions(call);
  const registryUrl = registryUrlOf(options);
  return supervise(call, async (supervisor) => {
    await requireFreePort(controlPort, '--control-port');
    await requireFreePort(start.port, '--proxy-port');
    const key = ensureLocalKey(start.home);
    const control = await supervisor.start(
      controlProgram(context, { ...start, registryUrl, port: controlPort, log: supervisor.openLog('control') }),
    );
    const sidecar = await supervisor.start(
      sidecarProgram(context, { ...start, controlUrl: control.url, log: supervisor.openLog('sidecar') }),
    );
    supervisor.publish({ controlUrl: control.url, proxyUrl: sidecar.url, control, sidecar });
    const signIn = await signInLink(context, control.url, key);
    const isFirst = !(await hasSecrets(context, control.url, key));
    announce(call, { ...factsOf(call, start.home), controlUrl: control.url, proxyUrl: sidecar.url, signIn, isFirst });
  });
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
    const sidecar = await supervisor.start(
      sidecarProgram(context, { ...start, controlUrl, log: supervisor.openLog('sidecar') }),
    );
    supervisor.publish({ controlUrl, proxyUrl: sidecar.url, control: null, sidecar });
    call.print.line(
      { proxy_url: sidecar.url, control_url: controlUrl, home: start.home },
      `the sidecar listens on ${sidecar.url}, for ${controlUrl}; Ctrl-C stops it`,
    );
  });
}

/** Reads and checks the command line and the environment before anything is changed. */
function prepareOptions(call: Call<SidecarOptions>) {
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

/** Starts the programs, waits for Ctrl-C or SIGTERM, and stops them, also if the start fails halfway. */
async function supervise(call: Call, start: (supervisor: Supervisor) => Promise<void>): Promise<number> {
  const { context, print } = call;
  const supervisor = await Supervisor.open(context, homeOf(context, call.options), (text) =>
    print.note(`svc: ${text}`),
  );
  try {
    await start(supervisor);
    await waitForStop(context.stop);
    if (!print.json) print.note('svc: stopping');
    return EXIT.ok;
  } finally {
    await supervisor.stop();
  }
}

function waitForStop(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    else signal.addEventListener('abort', () => done(), { once: true });
  });
}

/** Creates a one-time sign-in link. If that fails, everything else still works, so it is only reported. */
async function signInLink(context: CliContext, origin: string, token: string): Promise<UpFacts['signIn']> {
  const client = httpClient({ origin, token, name: 'the control plane', fetch: context.fetch, startFix: '' });
  try {
    const reply = await client.call('POST', '/v1/sign-in-links', signInLinkReply);
    return { url: reply.url, expiresAt: reply.expires_at };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    context.stderr.write(`svc: no sign-in link: ${error.message}\n`);
    return null;
  }
}

/** Whether a credential is stored. Only the first-run guide depends on it, so a failed call counts as none. */
async function hasSecrets(context: CliContext, origin: string, token: string): Promise<boolean> {
  const client = httpClient({ origin, token, name: 'the control plane', fetch: context.fetch, startFix: '' });
  try {
    const { items } = await client.call('GET', '/v1/secrets', secretsPage, { query: { limit: '1' } });
    return items.length > 0;
  } catch (error) {
    if (error instanceof CliError) return false;
    throw error;
  }
}

function factsOf(call: Call, home: string): Pick<UpFacts, 'version' | 'home' | 'command' | 'homeFlag'> {
  const { context, options } = call;
  const fromHere = relative(context.workingDirectory, join(context.root, 'bin', 'svc'));
  const command = fromHere.startsWith('..') ? join(context.root, 'bin', 'svc') : `./${fromHere}`;
  return { version: context.version, home, command, homeFlag: options.home === undefined ? '' : ` --home ${home}` };
}

function announce(call: Call, facts: UpFacts): void {
  const { print } = call;
  print.line(
    {
      control_url: facts.controlUrl,
      proxy_url: facts.proxyUrl,
      home: facts.home,
      sign_in_url: facts.signIn?.url ?? null,
      version: facts.version,
    },
    formatGuide(facts, print.paint).trimEnd(),
  );
}
