import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type ChildEnd, type SignalSource, superviseChild, unlessFromTerminal } from '../engine/run_child.ts';
import { holdFile, identifyFile } from './file_identity.ts';
import { listInherited } from './inherited_descriptors.ts';
import { holdPlaceholders } from './placeholders.ts';
import { CA_FILE, PROXY_SOCKET } from './sandbox_folder.ts';
import { ACCESS_FOLDER, OWN_FOLDER, type SandboxPlan } from './plan_sandbox.ts';

/** The port of the proxy in a sandbox's own network. */
export const SANDBOX_PORT = 7421;

const INIT_FILE = fileURLToPath(new URL('sandbox_init.cjs', import.meta.url));
const CARRY_FILE = fileURLToPath(new URL('../carrier/carry.cjs', import.meta.url));
/** The carrier that `bin/svc mcp gateway` runs in a sandbox: the one of images. */
const CARRIER_FOLDER = fileURLToPath(new URL('../image/mcp', import.meta.url));
const NODE = `${OWN_FOLDER}/node`;
/** The first program finds the other file beside its folder, as in the checkout. */
const INIT = `${OWN_FOLDER}/bubblewrap/sandbox_init.cjs`;
const CARRY = `${OWN_FOLDER}/carrier/carry.cjs`;
const CARRIER = `${OWN_FOLDER}/mcp`;
/** Where a sandbox has the folder of its session. */
export const SESSION_FOLDER = `${OWN_FOLDER}/session`;
/** The file with the session's roots, where the sandbox sees it. */
export const SANDBOX_CA = `${SESSION_FOLDER}/${CA_FILE}`;

/** The proxy's URL in the sandbox's own network. */
export function insideUrl(proxyUrl: string, port = SANDBOX_PORT): string {
  const url = new URL(proxyUrl);
  url.host = `127.0.0.1:${port}`;
  return url.href.replace(/\/$/, '');
}

/** Where the first program of a sandbox finds its orders and says that it runs. */
const ORDERS = 3;
const STATUS = 4;
const ARGUMENTS = 5;
const FILTER = 6;
const GIT_CONFIG = 7;
const AFTER_OURS = 8;

/**
 * A terminal's Ctrl-C reaches bubblewrap too, which would end, and the sandbox with it, before the command could decide. The
 * first program in the sandbox has the usual reactions again.
 */
const SHIELDED = 'trap "" INT QUIT HUP; exec "$@"';

/** What carries a sandbox's connections, which its first program finds beside its own folder. */
export const CARRY_PROGRAM = { source: CARRY_FILE, target: CARRY };

/** svc's own files in a sandbox, for the plan. */
export function ownFiles(sessionFolder: string): readonly { readonly source: string; readonly target: string }[] {
  return [
    { source: process.execPath, target: NODE },
    { source: INIT_FILE, target: INIT },
    CARRY_PROGRAM,
    { source: CARRIER_FOLDER, target: CARRIER },
    { source: sessionFolder, target: SESSION_FOLDER },
  ];
}

interface SandboxCommand {
  readonly bwrap: string;
  readonly plan: SandboxPlan;
  readonly filter: Buffer;
  readonly command: string;
  readonly args: readonly string[];
  /** The text of the sandbox's own `.gitconfig`. */
  readonly gitConfig: Promise<string>;
}

/** A sandbox that is started and waits for its command's environment. */
interface StartedSandbox {
  /** True once its first program runs; false if bubblewrap could not make the sandbox. */
  readonly isReady: Promise<boolean>;
  /** Runs the command until it ends. At a terminal its signals reach the command directly. */
  run(env: Readonly<Record<string, string>>, terminal: boolean, signals: SignalSource): Promise<ChildEnd>;
  /** What lost its cover while the sandbox ran, because it was replaced or removed outside: the command could use it from then on. */
  listUncovered(): readonly string[];
  /** Ends a sandbox whose command was not started. */
  abandon(): Promise<void>;
}

/** Starts a sandbox. It ends with this process, however that ends. */
export function startSandbox(wanted: SandboxCommand): StartedSandbox {
  const release = holdPlaceholders(wanted.plan.placeholders);
  const expected = wanted.plan.mounted.map((path) => [path, identifyFile(path)]);
  const covered = wanted.plan.covered.map(holdFile);
  const child = spawnBubblewrap(wanted);
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  });
  let uncovered: readonly string[] = [];
  const removed = ended.then(() => {
    uncovered = covered.filter((file) => !file.isThere()).map(({ path }) => path);
    for (const file of covered) file.release();
    return release();
  });
  const orders = streamAt(child, ORDERS);
  const { plan, gitConfig } = wanted;
  orders.write(`${JSON.stringify(expected)}\n`);
  const copied = plan.gitConfig === null ? [] : ['--perms', '0644', '--file', String(GIT_CONFIG), plan.gitConfig];
  streamAt(child, ARGUMENTS).end([...plan.args, ...copied, '--seccomp', String(FILTER)].join('\0'));
  streamAt(child, FILTER).end(wanted.filter);
  void gitConfig.then((text) => streamAt(child, GIT_CONFIG).end(text));
  return {
    isReady: readStatus(child),
    run: async (env, terminal, signals) => {
      const deliver = unlessFromTerminal(terminal, (name) => orders.write(`${name}\n`));
      const end = superviseChild(child, signals, deliver);
      orders.write(`${JSON.stringify(env)}\n`);
      const how = await end;
      await removed;
      return how;
    },
    listUncovered: () => uncovered,
    abandon: async () => {
      // Its first program ends then. Killed early, bubblewrap leaves a child behind that does not see its death yet.
      orders.end();
      await removed;
    },
  };
}

function spawnBubblewrap({ bwrap, command, args }: SandboxCommand): ChildProcess {
  const ours = [NODE, INIT, String(SANDBOX_PORT), `${SESSION_FOLDER}/${PROXY_SOCKET}`, ACCESS_FOLDER];
  const first = [...ours, command, ...args];
  const nothing = openSync('/dev/null', 'r+');
  try {
    return spawn('/bin/sh', ['-c', SHIELDED, 'sh', bwrap, '--args', String(ARGUMENTS), '--', ...first], {
      // The command's environment comes later; bubblewrap needs none.
      env: { PATH: '/usr/bin:/bin' },
      cwd: '/',
      stdio: [
        'inherit',
        'inherit',
        'inherit',
        'pipe',
        'pipe',
        'pipe',
        'pipe',
        'pipe',
        ...closedFrom(AFTER_OURS, nothing),
      ],
    });
  } finally {
    closeSync(nothing);
  }
}

/** Descriptors that this process inherited would go on into the sandbox: each is replaced by nothing. */
function closedFrom(first: number, nothing: number): readonly ('ignore' | number)[] {
  const inherited = new Set(listInherited());
  const count = Math.max(0, ...inherited) + 1 - first;
  return Array.from({ length: Math.max(0, count) }, (_, at) => (inherited.has(first + at) ? nothing : 'ignore'));
}

function streamAt(child: ChildProcess, descriptor: number): Writable {
  const stream: unknown = child.stdio[descriptor];
  if (!isWritable(stream)) throw new Error(`bubblewrap was started without descriptor ${descriptor}`);
  // bubblewrap that ends early reads no more; its exit says so.
  stream.on('error', () => undefined);
  return stream;
}

function isWritable(stream: unknown): stream is Writable {
  return typeof stream === 'object' && stream !== null && 'write' in stream;
}

function readStatus(child: ChildProcess): Promise<boolean> {
  const status = child.stdio[STATUS];
  return new Promise((resolve) => {
    child.once('error', () => resolve(false));
    status?.once('data', () => resolve(true));
    status?.once('close', () => resolve(false));
  });
}

/** The text of a file of the kernel; empty if there is none. */
export function readKernelFile(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}
