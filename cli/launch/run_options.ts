import type { SessionAccess } from '../../sandbox/launch/session_environment.ts';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import type { RequestLimits } from '../../shared/model/host_binding.ts';
import type { SecretScope } from '../../shared/wire/sources/narrowing.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { parseMcpServer } from '../mcp/mcp_server_option.ts';
import { parseSessionLength } from '../terminal/relative_time.ts';
import type { UseOptions } from './chosen_secrets.ts';
import { type LimitOptions, readLimits } from './limit_options.ts';
import { readScopes, type ScopeOptions } from './scope_option.ts';

export interface RunOptions extends UseOptions, ScopeOptions, LimitOptions {
  readonly name?: string;
  readonly ttl?: string;
  readonly relay?: boolean;
  readonly mcp?: readonly string[];
  readonly keepEnv?: readonly string[];
  readonly allowOnly?: readonly string[];
  readonly plainHttp?: readonly string[];
  readonly allow?: readonly string[];
  /** Only with a sandbox anything but open. */
  readonly egress?: string;
  readonly sandbox?: boolean;
  /** Paths that the sandbox shows. */
  readonly sandboxRead?: readonly string[];
  readonly sandboxWrite?: readonly string[];
  readonly login?: string;
  readonly quiet?: boolean;
  /** The profile that was named instead of a command. */
  readonly agent?: string;
}

/** A command for a session, and what it changes in the session's environment. */
export interface RunInSession {
  readonly command: string;
  readonly args: readonly string[];
  /** The session's name, unless `--name` gives one. */
  readonly name?: string;
  /** Unbound hosts to which it is known to send its placeholder. */
  readonly expectedHosts?: readonly string[];
  /** The secrets to use where a host is bound to several; without it, those of `--use` and of the folder. */
  readonly secrets?: readonly ChosenSecret[];
  /** The login that the session captures. */
  readonly login?: { readonly id: string; readonly placeholder: string };
  /** The last line counts the session's requests. */
  readonly isCounted?: boolean;
  /** Called when the command has ended and the session is still there. */
  readonly beforeEnd?: (sessionId: string) => Promise<void>;
  /** Whether the command has a sandbox, and what of an agent is visible in it; without it, the options decide. */
  readonly sandbox?: RunSandbox;
  readonly environment?: (environment: Record<string, string>, session: SessionAccess) => Record<string, string>;
}

/** What an agent needs in a sandbox besides its folder; absolute paths. */
export interface RunSandbox {
  readonly isWanted: boolean;
  /** The name of the agent, whose own login is not hidden. */
  readonly agent?: string;
  /** A person gave the agent svc's MCP gateway, so its session may use every server. */
  readonly hasGateway?: boolean;
  readonly readable: readonly string[];
  readonly writable: readonly string[];
}

/** Whether the command has a sandbox. */
export function isBoxed({ options }: Call<RunOptions>, { sandbox }: RunInSession): boolean {
  return sandbox?.isWanted ?? options.sandbox === true;
}

/** Options that are read before anything is asked for. */
export interface TypedOptions {
  readonly ttlSeconds: number | null;
  readonly servers: readonly string[];
  readonly scopes: readonly SecretScope[];
  readonly limits: RequestLimits;
}

/** Reads them; throws if one cannot be used. */
export async function typedOf(call: Call<RunOptions>): Promise<TypedOptions> {
  const { context, options } = call;
  const ttl = options.ttl === undefined ? null : parseSessionLength(options.ttl);
  if (ttl !== null && !ttl.ok) throw new CliError(EXIT.notStarted, `--ttl ${ttl.error}`);
  const unset = options.keepEnv?.find((name) => context.env[name] === undefined);
  if (unset !== undefined) {
    throw new CliError(EXIT.notStarted, `--keep-env ${JSON.stringify(unset.split('=', 1)[0])} is not a set variable`);
  }
  const servers = (options.mcp ?? []).map(parseServer);
  const [scopes, limits] = [await readScopes(options), await readLimits(call).catch(rethrowNotStarted)];
  return { ttlSeconds: ttl?.value ?? null, servers, scopes, limits };
}

function parseServer(text: string): string {
  const parsed = parseMcpServer(text);
  if (parsed.ok) return parsed.value;
  throw new CliError(EXIT.notStarted, `--mcp ${parsed.error}`);
}

/** For a failure before the command starts: it has an exit code of its own. */
export function rethrowNotStarted(error: unknown): never {
  throw notStarted(error);
}

/** As {@link rethrowNotStarted}, to throw. */
export function notStarted(error: unknown): unknown {
  return error instanceof CliError ? new CliError(EXIT.notStarted, error.message, error.fixes) : error;
}
