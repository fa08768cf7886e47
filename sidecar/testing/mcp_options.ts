import { join } from 'node:path';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { McpToolsReport } from '../../shared/wire/mcp/mcp_tools.ts';
import type { SnapshotMcpServer } from '../../shared/wire/mcp/mcp_servers.ts';
import type { ToolApprovalRequest } from '../control/approvals.ts';
import type { McpOptions } from '../local_api/mcp_options.ts';
import { Consents } from '../mcp/consents.ts';
import { HealthBoard } from '../mcp/health_board.ts';
import { RefusedHosts } from '../mcp/refused_hosts.ts';
import { ServerDirectory } from '../mcp/server_directory.ts';
import type { NotApproved } from '../ports.ts';
import { type FakeClock, FakeCredentialSource } from './fakes.ts';

/** The local API's dependencies for MCP servers, with controls for the test. */
export interface McpBench extends McpOptions {
  readonly credentials: FakeCredentialSource;
  /** The snapshot's servers; null before there is one. */
  use(servers: readonly SnapshotMcpServer[] | null): void;
  readonly asked: readonly ToolApprovalRequest[];
  onApproval: (gone: AbortSignal) => Promise<Result<string, NotApproved>>;
  readonly healthChanges: () => number;
  /** The snapshot's reviewed tools; null if its control plane keeps none. */
  reviewed: ReadonlyMap<string, readonly string[]> | null;
  readonly reports: McpToolsReport[];
}

/** Real consents, directory and board in a temporary home; the test controls the rest. */
export function mcpOptions({ home, clock }: { readonly home: string; readonly clock: FakeClock }): McpBench {
  let servers: readonly SnapshotMcpServer[] | null = [];
  let wake: (() => void) | null = null;
  let changes = 0;
  const asked: ToolApprovalRequest[] = [];
  const consents = new Consents({ directory: join(home, 'mcp'), clock, warn: () => undefined });
  const credentials = new FakeCredentialSource();
  const policy = {
    mcpServers: () => servers,
    reviewedTools: (serverId: string) => bench.reviewed && (bench.reviewed.get(serverId) ?? []),
    reviewedKinds: () => ['tool', 'prompt', 'instructions'],
    listUnreadableMcpServers: () => [],
    onCredentials: (listener: (credentials: readonly never[]) => void) => {
      wake = () => listener([]);
    },
  };
  const bench: McpBench = {
    directory: new ServerDirectory({ policy, credentials, consents }),
    consents,
    refused: new RefusedHosts(),
    board: new HealthBoard(clock),
    healthChanged: () => (changes += 1),
    credentials,
    approve: (request, gone) => {
      asked.push(request);
      return bench.onApproval(gone);
    },
    reviewed: null,
    reportTools: (report) => {
      bench.reports.push(report);
      return Promise.resolve(ok(1));
    },
    reports: [],
    onApproval: () => Promise.resolve(ok('apr_1')),
    gateway: { socket: () => Promise.resolve(err('there is no gateway in this test')) },
    facts: { is_local: true, extra_roots: [], upstream_proxy: {} },
    asked,
    healthChanges: () => changes,
    use: (next) => {
      servers = next;
      wake?.();
    },
  };
  return bench;
}
