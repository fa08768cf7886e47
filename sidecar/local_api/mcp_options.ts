import type { Result } from '../../shared/model/result.ts';
import type { ControlChannel } from '../control/control_channel.ts';
import type { ToolApprovalRequest } from '../control/approvals.ts';
import type { Consents } from '../mcp/consents.ts';
import type { GatewayChild } from '../mcp/gateway_child.ts';
import type { HealthBoard } from '../mcp/health_board.ts';
import type { RefusedHosts } from '../mcp/refused_hosts.ts';
import type { ServerDirectory } from '../mcp/server_directory.ts';
import type { CredentialSource, NotApproved } from '../ports.ts';
import type { GatewayFacts } from '../../shared/wire/mcp/mcp_gateway.ts';

/** The local API's dependencies for MCP servers. */
export interface McpOptions {
  readonly directory: ServerDirectory;
  readonly consents: Pick<Consents, 'give' | 'withdraw' | 'allowHosts'>;
  readonly refused: RefusedHosts;
  readonly board: HealthBoard;
  /** Called when the board has news. */
  readonly healthChanged: () => void;
  readonly credentials: Pick<CredentialSource, 'resolve'>;
  /** Waits until a person has decided; resolves with the approval's id. */
  readonly approve: (request: ToolApprovalRequest, gone: AbortSignal) => Promise<Result<string, NotApproved>>;
  /** Reports tools to the control plane; resolves with the policy version that has the outcome. */
  readonly reportTools: ControlChannel['reportMcpTools'];
  /** The gateway behind `/v1/mcp`. */
  readonly gateway: Pick<GatewayChild, 'socket'>;
  /** For all gateways together. */
  readonly facts: GatewayFacts;
}
