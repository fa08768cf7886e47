// The control worker on Node and Deno: `node worker/entries/node.ts --local --home DIR --port N`, or `deno run` with the same flags.
import { createServer, IncomingMessage, type Server } from 'node:http';
import { parseArgs } from 'node:util';
import { getRequestListener } from '@hono/node-server';
import { getConnInfo } from '@hono/node-server/conninfo';
import type { Secret } from '../../shared/model/secret.ts';
import { DEFAULT_CONTROL_PORT, parseRegistryUrl, type Settings } from '../../shared/model/settings.ts';
import { createApp } from '../app.ts';
import { fileAssets } from './file_assets.ts';
import { fileServices } from './file_services.ts';
import { fileTemplates } from './file_templates.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import { LOCAL_KEY_PROBLEM, makeMasterKey, openLocalKey, parseLocalKey } from '../installation/local_home.ts';
import type { ProgramContext } from '../installation/program_context.ts';
import { start } from '../installation/start.ts';
import { SharedLooks } from '../kernel/policy_looks.ts';
import { QueuedTurns } from '../kernel/turns.ts';
import { readSettings } from './node_command.ts';
import { type Clients, databaseOf, openClients } from './node_database.ts';
import { databaseInHome, homeDirectory, homeFiles, makeHome } from './node_home.ts';
import { clientAddress } from './client_address.ts';
import type { UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { openableConnections } from '../../shared/net/connection_gate.ts';
import { guardConnections, serverDeadlines } from './guard_connections.ts';
import { listenAt, type Listening, listenOnInherited, listenOnLoopback } from './node_listen.ts';
import { nodeOutbound, parsePin, type PinnedAddress } from './node_outbound.ts';
import { EXIT_PORT_TAKEN, EXIT_USAGE, log, ProgramError, refuse } from './program_error.ts';
import { detectOtherUsers } from './node_peer_user.ts';
import { stopOnSignal } from './node_stop.ts';
import { readProxy, trustRoots } from './node_trust.ts';
import { contextOfKeys, keyVersion } from './node_vault_key.ts';
import { startTurnTimer } from './turn_timer.ts';
import { periodicTurns } from './periodic_turns.ts';
import { masterKeys } from './vault_key_files.ts';
import { SYSTEM_CLOCK } from '../kernel/clock.ts';

/** How long open requests may take when the program stops; less in local mode, where a person waits. */
const LOCAL_GRACE_MS = 300;
const HOSTED_GRACE_MS = 10_000;

interface Options {
  readonly local: boolean;
  readonly home: string;
  /** The local key from the environment, if no home is named that it could be kept in. */
  readonly localKey: Secret | null;
  readonly port: number;
  readonly listen: string;
  /** The words that call svc on this machine. */
  readonly command: readonly string[] | undefined;
  /** How many bound sockets the parent process passed on; 0 to bind the port here. */
  readonly inherited: number;
  readonly upstreamCaFiles: readonly string[];
  readonly pinned: ReadonlyMap<string, PinnedAddress>;
  readonly registryUrl: string | undefined;
  readonly proxy: UpstreamProxy | null;
  readonly settings: Settings;
}

async function main(): Promise<void> {
  const options = readOptions();
  const trust = trustRoots(options.upstreamCaFiles);
  // Reading the system's roots takes 0.2 s, so a local control plane does it with its first call.
  if (!options.local || options.settings.databaseUrl !== undefined) trust();
  if (writesHome(options)) makeHome(options.home);
  const clients = await openClients(options.settings, options.home);
  const lifetime = new ProgramLifetime(logDeferredFailure);
  const version = keyVersion(options.home);
  const context = await startServices(options, clients, { lifetime, trust });
  const isFile = options.settings.vaultKey === undefined;
  const current = isFile ? followKeys(options, clients, { context, version }) : () => context;
  const isOther = detectOtherUsers(process.getuid?.());
  const app = createApp({
    context: current,
    assets: fileAssets(),
    templates: fileTemplates,
    services: fileServices,
    log,
    compresses: true,
    clientAddress: (c) => clientAddress(getConnInfo(c).remote.address ?? null, c.req.header('x-forwarded-for')),
    isOtherUser: ({ env }) => isOther(isSocketHolder(env['incoming']) ? env['incoming'].socket : undefined),
  });
  const answer = getRequestListener(app.fetch);
  const { limits } = options.settings;
  const server = createServer(serverDeadlines(limits), (request, response) => void answer(request, response));
  guardConnections(server, { limits, maxOpen: openableConnections(process.report), log });
  const { address, twin } = await listenFor(server, options);
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  process.stdout.write(`${JSON.stringify({ listening: `http://${host}:${address.port}` })}\n`);
  const graceMs = options.local ? LOCAL_GRACE_MS : HOSTED_GRACE_MS;
  stopOnSignal({ server, twin, lifetime, clients, graceMs });
  startTurnTimer({ turns: periodicTurns(options.settings, log), context: current, lifetime });
}

function readOptions(): Options {
  const { values } = parseFlags();
  const given = readSettings();
  const upstreamCaFiles = values['upstream-ca'] ?? given.upstreamCaFiles;
  const settings = { ...given, upstreamCaFiles };
  const home = homeDirectory(values.home, settings);
  const local = values.local ?? false;
  const listen = values.listen ?? '127.0.0.1';
  if (local && !['127.0.0.1', '::1', 'localhost'].includes(listen)) {
    const message = `--listen ${listen}: with --local it listens only on 127.0.0.1 and ::1, where browsers find the console`;
    throw new ProgramError('invalid_flag', message, EXIT_USAGE);
  }
  const inherited = values['listen-fds'] === undefined ? 0 : Number(values['listen-fds']);
  const pinned = readPins(values.resolve ?? [], local);
  const registryUrl = readRegistryUrl(values['registry-url']) ?? settings.registryUrl;
  const port = readPort(values.port);
  const isNamed = (values.home ?? settings.home) !== undefined;
  if (!local && !isNamed && settings.databaseUrl === undefined) {
    throw new ProgramError('invalid_setting', 'no database: set SVC_DATABASE_URL, or give --home', EXIT_USAGE);
  }
  const localKey = local && !isNamed ? readLocalKey() : null;
  const proxy = readProxy();
  const { command } = values;
  return {
    local,
    home,
    localKey,
    port,
    listen,
    command,
    inherited,
    upstreamCaFiles,
    pinned,
    registryUrl,
    proxy,
    settings,
  };
}

/** The local key from the environment; null if it is not set. */
function readLocalKey(): Secret | null {
  const text = process.env['SVC_LOCAL_KEY'];
  if (text === undefined) return null;
  const key = parseLocalKey(text);
  if (key !== null) return key;
  throw new ProgramError('invalid_setting', LOCAL_KEY_PROBLEM, EXIT_USAGE);
}

/** Whether the home gets files: the database, or the keys that only a local control plane makes. */
function writesHome({ local, localKey, settings, home }: Options): boolean {
  if (databaseInHome(settings, home) !== null) return true;
  return local && (settings.vaultKey === undefined || localKey === null);
}

function parseFlags() {
  try {
    return parseArgs({
      options: {
        local: { type: 'boolean' },
        home: { type: 'string' },
        port: { type: 'string' },
        listen: { type: 'string' },
        command: { type: 'string', multiple: true },
        'listen-fds': { type: 'string' },
        'upstream-ca': { type: 'string', multiple: true },
        resolve: { type: 'string', multiple: true },
        'registry-url': { type: 'string' },
      },
    });
  } catch (error) {
    throw new ProgramError('invalid_flag', error instanceof Error ? error.message : 'a flag is wrong', EXIT_USAGE);
  }
}

function readPort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_CONTROL_PORT;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new ProgramError(
    'invalid_flag',
    `--port ${JSON.stringify(text)}: use 0 to 65535 (0 is any free port)`,
    EXIT_USAGE,
  );
}

function readRegistryUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = parseRegistryUrl(text);
  if (url.ok) return url.value;
  throw new ProgramError('invalid_flag', `--registry-url ${url.error}`, EXIT_USAGE);
}

/** Hosts with another dial address, from `--resolve HOST:ADDRESS[:PORT]`. */
function readPins(texts: readonly string[], local: boolean): ReadonlyMap<string, PinnedAddress> {
  if (texts.length > 0 && !local) throw new ProgramError('invalid_flag', '--resolve requires --local', EXIT_USAGE);
  return new Map(
    texts.map((text) => {
      const pin = parsePin(text);
      if (pin !== null) return pin;
      const message = `--resolve is ${JSON.stringify(text)}: give HOST:ADDRESS or HOST:ADDRESS:PORT, such as api.example.test:127.0.0.1:8443`;
      throw new ProgramError('invalid_flag', message, EXIT_USAGE);
    }),
  );
}

async function startServices(
  options: Options,
  clients: Clients,
  { lifetime, trust }: { readonly lifetime: ProgramLifetime; readonly trust: () => void },
): Promise<ProgramContext> {
  const files = homeFiles(options.home);
  const localKey = options.local
    ? (options.localKey ?? valueOrProgramError('local_key_damaged', await openLocalKey(files)))
    : null;
  const started = await start({
    database: databaseOf(clients),
    lifetime,
    clock: SYSTEM_CLOCK,
    turns: new QueuedTurns(SYSTEM_CLOCK),
    policyLooks: new SharedLooks(SYSTEM_CLOCK, lifetime.stopping),
    outbound: nodeOutbound({
      isLocal: options.local,
      pinned: options.pinned,
      proxy: options.proxy,
      privateHosts: options.settings.privateHosts,
      prepareTrust: trust,
    }),
    ...(await masterKeys(options.settings, options.home)),
    makeMasterKey: options.local ? () => makeMasterKey(files) : null,
    rereadMasterKey: async () => (await masterKeys(options.settings, options.home)).masterKey,
    localKey,
    command: options.command,
    publicUrl: options.settings.publicUrl,
    mcpClientUrl: options.settings.mcpClientUrl,
    signIn: options.settings.signIn,
    limits: options.settings.limits,
    callsPerMinute: options.settings.callsPerMinute,
    quotaPercent: options.settings.quotaPercent,
    registry: { url: options.registryUrl },
    anchors: options.settings.anchors,
    auditRetentionDays: options.settings.auditRetentionDays,
    printMail: log,
    log,
  });
  if (!started.ok) throw new ProgramError(started.error.reason, started.error.message);
  return started.value;
}

/** The context of each request, with the master key that is in the file at that time. */
function followKeys(
  { home, settings }: Options,
  clients: Clients,
  started: { readonly context: ProgramContext; readonly version: string },
): () => Promise<ProgramContext> {
  return contextOfKeys({ home, settings, database: databaseOf(clients), ...started, log });
}

function valueOrProgramError<T>(code: string, result: { ok: true; value: T } | { ok: false; error: string }): T {
  if (result.ok) return result.value;
  throw new ProgramError(code, result.error);
}

async function listenFor(server: Server, options: Options): Promise<Listening> {
  try {
    if (options.inherited > 0) return await listenOnInherited(server, options.inherited);
    if (options.local) return await listenOnLoopback(server, options.listen, options.port);
    return { address: await listenAt(server, options.listen, options.port), twin: null };
  } catch (error) {
    throw error instanceof Error ? listenError(error, options) : error;
  }
}

function isSocketHolder(value: unknown): value is IncomingMessage {
  return value instanceof IncomingMessage;
}

function listenError(error: NodeJS.ErrnoException & { readonly address?: string }, options: Options): ProgramError {
  const address = `${error.address ?? options.listen}:${options.port}`;
  if (error.code === 'EADDRINUSE') {
    return new ProgramError(
      'port_taken',
      `another program listens on ${address}: stop it, or use --port 0 for any free port`,
      EXIT_PORT_TAKEN,
    );
  }
  return new ProgramError(
    'cannot_listen',
    `cannot listen on ${address} (${error.code ?? 'unknown'}): choose another --listen or --port`,
  );
}

function logDeferredFailure(what: string): void {
  log({ level: 'error', message: `deferred work failed: ${what}` });
}

main().catch(refuse);
