import type { Result } from '../../shared/model/result.ts';
import type { ToolApprovalRequest } from '../control/approvals.ts';
import type { Consents } from '../mcp/consents.ts';
import type { GatewayChild } from '../mcp/gateway_child.ts';
import type { HealthBoard } from '../mcp/health_board.ts';
import type { ServerDirectory } from '../mcp/server_directory.ts';
import type { CredentialSource, NotApproved } from '../ports.ts';
import type { GatewayFacts } from '../../shared/wire/mcp_gateway.ts';

/** What the local API stands on where it is about MCP servers. */
export interface McpOptions {
  readonly directory: ServerDirectory;
  readonly consents: Pick<Consents, 'give' | 'withdraw'>;
  readonly board: HealthBoard;
  /** Told that the board has something new. */
  readonly healthChanged: () => void;
  readonly credentials: Pick<CredentialSource, 'resolve'>;
  /** Holds until a person has decided; the approval's id. */
  readonly approve: (request: ToolApprovalRequest, gone: AbortSignal) => Promise<Result<string, NotApproved>>;
  /** The gateway behind `/v1/mcp`. */
  readonly gateway: Pick<GatewayChild, 'socket'>;
  /** For every gateway. */
  readonly facts: GatewayFacts;
}
