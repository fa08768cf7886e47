import type { Readable, Writable } from 'node:stream';
import { parseSettings, type Settings } from '../shared/model/settings.ts';
import { CliError, EXIT } from './exit_codes.ts';

/** A stream that may be a terminal. */
export type InputStream = Readable & { readonly isTTY?: boolean; setRawMode?: (raw: boolean) => unknown };
export type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** What a command gets from the outside; the composition root fills it, tests fill it with their own. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: InputStream;
  /** True when stdin is a terminal; asked without opening `stdin`, which a child may want to inherit. */
  readonly interactive: boolean;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** The user's home directory. */
  readonly userHome: string;
  /** The working directory. */
  readonly workingDirectory: string;
  /** The checkout: where the programs and the catalog are. */
  readonly root: string;
  readonly version: string;
  /** Where Node keeps compiled code of the checkout, for the programs that are started. */
  readonly compileCache: string;
  readonly fetch: typeof fetch;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Waits; resolves at once when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Aborted by the first Ctrl-C or SIGTERM, for the commands that go on until then. */
  readonly stop: AbortSignal;
}

/** The options that every command takes. */
export interface GlobalOptions {
  readonly home?: string;
  readonly control?: string;
  readonly json?: boolean;
}

/** The settings of the environment; every bad one is reported, by name. */
export function settingsOf(context: CliContext): Settings {
  const parsed = parseSettings(context.env);
  if (parsed.ok) return parsed.value;
  const [first, ...rest] = parsed.error.map((problem) => problem.message);
  throw new CliError(EXIT.usage, first ?? 'the environment cannot be used', rest);
}
