import type { CallToolResult, Tool } from '@modelcontextprotocol/client';
import type { Caller } from '../../../kernel/caller.ts';
import type { ServiceContext } from '../../../kernel/service_context.ts';
import type { RunClient } from '../../connectors/connector_run_event.ts';

/** A client's request at the MCP server of a person. */
export interface ServedRequest {
  readonly context: ServiceContext;
  readonly caller: Caller;
  /** The client that a person connected; its id is in the audit log. */
  readonly client: RunClient;
  /** Whether the person agreed to the operations of connectors too. */
  readonly hasOperations: boolean;
  readonly signal: AbortSignal;
}

/** A client's call of a tool. */
export interface ServedCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Those of the request, which repeat some arguments; null in the earlier generation, whose clients repeat none. */
  readonly headers: Headers | null;
}

/** The headers of a call differ from its body, so it is not made. */
export class HeaderMismatch extends Error {}

/** The result with the output schema that the tool declares; null if there is no such tool. A refusal is a result. */
export interface ServedResult {
  readonly result: CallToolResult;
  readonly outputSchema: Tool['outputSchema'];
}
