import type { Readable, Writable } from 'node:stream';
import type { LearnTools } from '../gateway/trial/learn_tools.ts';
import type { Npm } from '../gateway/packages/npm_program.ts';
import type { Pip } from '../gateway/packages/pip_program.ts';
import type { FindServerSandbox } from '../gateway/servers/sealed_sandbox.ts';
import { parseSettings, type Settings } from '../shared/model/settings.ts';
import { CliError, EXIT } from './exit_codes.ts';
import type { Waiter } from './launch/waiter.ts';
import type { ApiCall } from './terminal/http_client.ts';

/** A stream that may be a terminal. */
export type InputStream = Readable & { readonly isTTY?: boolean; setRawMode?: (raw: boolean) => unknown };
export type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number | undefined };

/** A command's access to the outside world. The composition root fills it with the real one, tests with fakes. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: InputStream;
  /** True if stdin is a terminal. Known without opening `stdin`, so that a child can inherit it. */
  readonly interactive: boolean;
  /** False if this process is a background job of its terminal. It may change while a command runs. */
  readonly isInForeground: () => boolean;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** The user's home directory. */
  readonly userHome: string;
  /** The working directory. */
  readonly workingDirectory: string;
  /** The checkout, with the programs and the catalog. */
  readonly root: string;
  readonly version: string;
  /** Node's compile cache, passed on to programs that are started. */
  readonly compileCache: string;
  /** Calls the control plane or the sidecar. */
  readonly fetch: ApiCall;
  /** npm; by default the one on the PATH. */
  readonly npm?: Npm;
  /** python3 with pip; by default those on the PATH. */
  readonly pip?: Pip;
  /** Whether a server can run in a sandbox of this machine; by default bubblewrap's. */
  readonly findServerSandbox?: FindServerSandbox;
  /** Starts a server once for its tools; by default in a container or a sandbox of this machine. */
  readonly learnTools?: LearnTools;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Aborted by the first Ctrl-C or SIGTERM, with the signal's name as its reason; for commands that run until then. */
  readonly stop: AbortSignal;
  /** From now on `stop` is a new signal that the next Ctrl-C or SIGTERM aborts. */
  readonly renewStop: () => void;
  /** The shell that waits for the end of a run; without it, this process waits. */
  readonly waiter?: Waiter;
}

/** The global options. */
export interface GlobalOptions {
  readonly home?: string;
  readonly control?: string;
  readonly json?: boolean;
  /** Set by `svc join`, by no option: a sidecar runs on the state directory, and no user is signed in. */
  readonly withoutUser?: boolean;
}

/** Reads the settings from the environment; the error names every invalid one. */
export function settingsOf(context: CliContext): Settings {
  const parsed = parseSettings(context.env);
  if (parsed.ok) return parsed.value;
  const [first, ...rest] = parsed.error.map((problem) => problem.message);
  throw new CliError(EXIT.usage, first ?? 'these environment variables are invalid', rest);
}
