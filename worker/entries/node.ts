// The control worker on Node: `node worker/entries/node.ts --local --home DIR --port N`.
import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Server } from 'node:http';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { serve } from '@hono/node-server';
import { type Client, createClient } from '@libsql/client';
import { DEFAULT_CONTROL_PORT, parseSettings, type Settings } from '../../shared/model/settings.ts';
import { createApp } from '../app.ts';
import type { LogEntry } from '../routes/app_env.ts';
import { type HomeFiles, makeMasterKey, openLocalKey, readMasterKey } from '../services/local_home.ts';
import { type ServiceContext, SYSTEM_CLOCK } from '../services/service_context.ts';
import { start } from '../services/start.ts';
import { QueuedTurns } from '../services/turns.ts';
import { closeFile, fetchInTime, isDamage, openDatabase, prepareFile } from '../store/database.ts';
import { nodeOutbound, parsePin, type PinnedAddress } from './node_outbound.ts';

const EXIT_REFUSED = 1;
const EXIT_USAGE = 2;
const EXIT_PORT_TAKEN = 3;
/** How long requests under way may take when the program stops. */
const GRACE_MS = 300;

/** An expected reason not to start. */
class Refusal extends Error {
  readonly code: string;
  readonly exitCode: number;

  constructor(code: string, message: string, exitCode = EXIT_REFUSED) {
    super(message);
    this.code = code;
    this.exitCode = exitCode;
  }
}

interface Options {
  readonly local: boolean;
  readonly home: string;
  readonly port: number;
  readonly listen: string;
  readonly upstreamCaFiles: readonly string[];
  readonly pinned: ReadonlyMap<string, PinnedAddress>;
  readonly settings: Settings;
}

async function main(): Promise<void> {
  const options = readOptions();
  trustRoots(options.upstreamCaFiles);
  makeHome(options.home);
  const client = openClient(options);
  const context = await startServices(options, client);
  const app = createApp({ context: () => context, log });
  const server = serve({ fetch: app.fetch, hostname: options.listen, port: options.port }, (address) => {
    const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
    process.stdout.write(`${JSON.stringify({ listening: `http://${host}:${address.port}` })}\n`);
  });
  server.on('error', (error: NodeJS.ErrnoException) => refuse(listenRefusal(error, options)));
  if (server instanceof Server) stopOnSignal(server, client);
}

function readOptions(): Options {
  const { values } = parseFlags();
  const settings = parseSettings(process.env);
  if (!settings.ok)
    throw new Refusal('invalid_setting', settings.error.map(({ message }) => message).join('; '), EXIT_USAGE);
  const home = resolve(values.home ?? settings.value.home ?? join(homedir(), '.svc'));
  const local = values.local ?? false;
  const listen = values.listen ?? '127.0.0.1';
  if (local && !/^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(listen)) {
    throw new Refusal('invalid_flag', `--listen ${listen}: --local listens on loopback alone`, EXIT_USAGE);
  }
  const upstreamCaFiles = values['upstream-ca'] ?? settings.value.upstreamCaFiles;
  const pinned = readPins(values.resolve ?? [], local);
  return { local, home, port: readPort(values.port), listen, upstreamCaFiles, pinned, settings: settings.value };
}

function parseFlags() {
  try {
    return parseArgs({
      options: {
        local: { type: 'boolean' },
        home: { type: 'string' },
        port: { type: 'string' },
        listen: { type: 'string' },
        'upstream-ca': { type: 'string', multiple: true },
        resolve: { type: 'string', multiple: true },
      },
    });
  } catch (error) {
    throw new Refusal('invalid_flag', error instanceof Error ? error.message : 'a flag is wrong', EXIT_USAGE);
  }
}

function readPort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_CONTROL_PORT;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new Refusal('invalid_flag', `--port ${JSON.stringify(text)}: use 0 to 65535 (0 is any free port)`, EXIT_USAGE);
}

/** Hosts that are dialled elsewhere, by `--resolve HOST:ADDRESS[:PORT]`. */
function readPins(texts: readonly string[], local: boolean): ReadonlyMap<string, PinnedAddress> {
  if (texts.length > 0 && !local) throw new Refusal('invalid_flag', '--resolve is for --local alone', EXIT_USAGE);
  return new Map(
    texts.map((text) => {
      const pin = parsePin(text);
      if (pin !== null) return pin;
      const message = `--resolve is ${JSON.stringify(text)}: give HOST:ADDRESS or HOST:ADDRESS:PORT, such as api.example.test:127.0.0.1:8443`;
      throw new Refusal('invalid_flag', message, EXIT_USAGE);
    }),
  );
}

/** Adds roots for the calls this program makes itself. */
function trustRoots(files: readonly string[]): void {
  if (files.length === 0) return;
  const roots = files.map((file) => readPem(file));
  setDefaultCACertificates([...getCACertificates('default'), ...roots]);
}

function readPem(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw new Refusal('invalid_flag', `--upstream-ca ${file}: cannot be read; give a PEM file`, EXIT_USAGE);
  }
}

function makeHome(home: string): void {
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
  } catch (error) {
    const code = isErrno(error) ? error.code : 'unknown';
    throw new Refusal('home_unusable', `--home ${home}: cannot be made (${code}); choose a directory you may write to`);
  }
}

function openClient(options: Options): Client {
  const { databaseUrl, databaseToken } = options.settings;
  const file = join(options.home, 'control.db');
  const url = databaseUrl ?? pathToFileURL(file).href;
  const token = databaseToken && { authToken: databaseToken.reveal() };
  try {
    if (databaseUrl === undefined) makePrivate(file);
    return createClient({ url, timeout: 5_000, fetch: fetchInTime, ...token });
  } catch (error) {
    if (isDamage(error)) throw damaged(url);
    throw new Refusal('database_unavailable', `${url} cannot be opened: check SVC_DATABASE_URL and the file's rights`);
  }
}

/** Makes the file where there is none. SQLite gives the files that it puts beside it the same rights. */
function makePrivate(file: string): void {
  closeSync(openSync(file, 'a', 0o600));
  chmodSync(file, 0o600);
}

async function startServices(options: Options, client: Client): Promise<ServiceContext> {
  const files = homeFiles(options.home);
  const localKey = options.local ? required('local_key_damaged', await openLocalKey(files)) : null;
  const masterKey = options.settings.vaultKey ?? required('vault_key_damaged', await readMasterKey(files));
  if (client.protocol === 'file' && !(await prepareFile(client))) throw damaged(options.home);
  const started = await start({
    database: openDatabase(client),
    clock: SYSTEM_CLOCK,
    turns: new QueuedTurns(SYSTEM_CLOCK),
    outbound: nodeOutbound({ isLocal: options.local, pinned: options.pinned }),
    masterKey,
    makeMasterKey: options.local ? () => makeMasterKey(files) : null,
    localKey,
    publicUrl: options.settings.publicUrl,
  });
  if (!started.ok) throw new Refusal(started.error.reason, started.error.message);
  return started.value;
}

function damaged(place: string): Refusal {
  const message = `the database in ${place} is damaged, or is not a libSQL database: restore it from a backup, or move it away to begin anew`;
  return new Refusal('database_damaged', message);
}

function required<T>(code: string, result: { ok: true; value: T } | { ok: false; error: string }): T {
  if (result.ok) return result.value;
  throw new Refusal(code, result.error);
}

/** Files of mode 0600. A file comes into being whole, by a link that fails when the name is taken. */
function homeFiles(home: string): HomeFiles {
  return {
    async read(name) {
      try {
        return readFileSync(join(home, name), 'utf8');
      } catch (error) {
        if (isErrno(error) && error.code === 'ENOENT') return null;
        throw new Refusal('home_unreadable', `${join(home, name)} cannot be read: check its rights`);
      }
    },
    async createOnce(name, text) {
      const draft = join(home, `.${name}.${randomBytes(8).toString('hex')}`);
      writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
      try {
        linkSync(draft, join(home, name));
      } catch (error) {
        if (!isErrno(error) || error.code !== 'EEXIST') throw error;
      } finally {
        rmSync(draft);
      }
    },
  };
}

function stopOnSignal(server: Server, client: Client): void {
  const stop = () => {
    server.close(() => void closeFile(client).then(() => process.exit(0), refuse));
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), GRACE_MS).unref();
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

function listenRefusal(error: NodeJS.ErrnoException, options: Options): Refusal {
  const address = `${options.listen}:${options.port}`;
  if (error.code === 'EADDRINUSE') {
    return new Refusal(
      'port_taken',
      `${address} is taken by another program: stop that one, or use --port 0 for any free port`,
      EXIT_PORT_TAKEN,
    );
  }
  return new Refusal(
    'cannot_listen',
    `cannot listen on ${address} (${error.code ?? 'unknown'}): choose another --listen or --port`,
  );
}

function isErrno(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error;
}

function log(entry: LogEntry): void {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`);
}

function refuse(error: unknown): void {
  if (error instanceof Refusal) {
    log({ level: 'error', message: error.message, code: error.code });
    process.exit(error.exitCode);
  }
  log({ level: 'error', message: 'the control plane cannot start', code: isErrno(error) ? (error.code ?? '') : '' });
  process.exit(EXIT_REFUSED);
}

main().catch(refuse);
