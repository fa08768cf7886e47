import type { CallToolResult, Tool } from '@modelcontextprotocol/client';
import { listOperations } from '../../../../shared/operation_tools/list_operations.ts';
import { connectorTool, connectorToolName, toolRun } from '../../../../shared/operation_tools/connector_tool.ts';
import { resultOfFailure, resultOfReply } from '../../../../shared/operation_tools/tool_result.ts';
import type { ListedOperation } from '../../../../shared/wire/connectors/connector_operations.ts';
import { sha256Hex } from '../../../kernel/sha256.ts';
import type { UsableConnector } from '../../connectors/connector_access.ts';
import { toInstalled } from '../../connectors/connector_records.ts';
import { chooseConnector, runOperation } from '../../connectors/run_operation.ts';
import { listUsableConnectors } from '../../sharing/shared_connectors.ts';
import type { ServedCall, ServedRequest, ServedResult } from './served_request.ts';

/** The operations of the caller's connectors as tools, with the names that they have at a gateway. */
export async function listServedOperations(request: ServedRequest): Promise<readonly Tool[]> {
  const named = await readOperations(request);
  return Array.from(named, ([name, operation]) => connectorTool(name, operation));
}

/** The operations by name, of the connectors that a run would choose; none for a client whose person was not asked about them. */
async function readOperations(request: ServedRequest): Promise<ReadonlyMap<string, ListedOperation>> {
  const { context, caller, hasOperations } = request;
  if (!hasOperations) return new Map();
  const byFqn = new Map<string, UsableConnector[]>();
  for (const row of await listUsableConnectors(context, caller)) {
    const { fqn } = row.connector;
    byFqn.set(fqn, [...(byFqn.get(fqn) ?? []), row]);
  }
  const chosen = [...byFqn.values()].flatMap((same) => chooseConnector(caller, same) ?? []);
  const operations = chosen.flatMap((row) => listOperations(toInstalled(row).spec));
  return new Map(operations.map((operation) => [connectorToolName(operation, sha256Hex), operation]));
}

/**
 * Runs an operation for a client, as {@link runOperation} does for its person: with the same checks, approvals and audit event.
 * Null if there is no such operation.
 */
export async function callServedOperation(request: ServedRequest, call: ServedCall): Promise<ServedResult | null> {
  const operation = (await readOperations(request)).get(call.name);
  if (operation === undefined) return null;
  return { result: await runTool(request, operation, call), outputSchema: undefined };
}

async function runTool(
  { context, caller, client }: ServedRequest,
  operation: ListedOperation,
  { name, args }: ServedCall,
): Promise<CallToolResult> {
  const run = toolRun(name, operation, args);
  if (!run.ok) return resultOfFailure(operation, run.error);
  const ran = await runOperation(context, caller, run.value, client);
  return ran.ok ? resultOfReply(ran.value) : resultOfFailure(operation, ran.error);
}
