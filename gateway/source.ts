import type { CallToolResult, Progress, Tool } from '@modelcontextprotocol/server';
import type { Caller } from '../machine/mcp_caller.ts';

/** One call of a tool that is built into the gateway. */
export interface SourceCall {
  readonly caller: Caller;
  /** As the source named it in {@link ToolSource.tools}. */
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Aborted when the client cancels, goes away, or the time for a call is over. */
  readonly signal: AbortSignal;
  /** Told to the client when it asked for progress. */
  progress(progress: Progress): void;
}

/**
 * Tools that the gateway has of itself, beside those of downstream servers. What they do is authorised, limited and
 * audited by the source, for only the source knows what a call comes to.
 */
export interface ToolSource {
  /** Prefix of the names of its tools; no server's name begins like it (`_` cannot be in a server's name). */
  readonly prefix: string;
  /** The tools that this caller may call now. Rejects when they cannot be told; the other sources are listed all the same. */
  tools(caller: Caller, signal: AbortSignal): Promise<readonly Tool[]>;
  /** A refusal is a result with `isError`; rejects on a bug. */
  call(call: SourceCall): Promise<CallToolResult>;
  /** Calls `onChange` whenever {@link ToolSource.tools} may say something else; returns what ends that. */
  watch(onChange: () => void): () => void;
}
