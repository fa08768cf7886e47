import type { CallToolResult, Progress, Tool } from '@modelcontextprotocol/server';
import type { Caller } from '../machine/mcp_caller.ts';

/** One call of a built-in tool of the gateway. */
export interface SourceCall {
  readonly caller: Caller;
  /** The name that {@link ToolSource.tools} returned. */
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Aborted if the client cancels or disconnects, or the call times out. */
  readonly signal: AbortSignal;
  /** Sent to the client if it asked for progress. */
  progress(progress: Progress): void;
}

/**
 * Built-in tools of the gateway, in addition to those of downstream servers. The source authorises, limits and audits their
 * calls, because only it knows their effects.
 */
export interface ToolSource {
  /** Prefix of its tools' names; no server's name can begin with it (`_` is not allowed in a server's name). */
  readonly prefix: string;
  /** The tools that this caller may call now. If this rejects, other sources are still listed. */
  tools(caller: Caller, signal: AbortSignal): Promise<readonly Tool[]>;
  /** A refusal is a result with `isError`; rejects only on a bug. */
  call(call: SourceCall): Promise<CallToolResult>;
  /** Calls `onChange` whenever {@link ToolSource.tools} may have changed; returns the function to stop that. */
  watch(onChange: () => void): () => void;
}
