import type { CallToolResult, Tool } from '@modelcontextprotocol/server';
import {
  CONNECTOR_TOOL_PREFIX,
  connectorTool,
  connectorToolName,
  noSuchTool,
  toolRun,
} from '../../shared/operation_tools/connector_tool.ts';
import { resultOfFailure, resultOfReply } from '../../shared/operation_tools/tool_result.ts';
import type { ListedOperation } from '../../shared/wire/connectors/connector_operations.ts';
import type { ConnectorCalls, OperationList } from '../sidecar/connector_calls.ts';
import type { SourceCall, ToolSource } from '../tool_source.ts';
import { sha256Hex } from '../../machine/sha256.ts';

/** The ports of the connectors' tools. */
interface ConnectorToolsPorts {
  readonly sidecar: ConnectorCalls;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

const WATCH_SECONDS = 25;
const RETRY_MS = 5_000;

/** A list of operations as tools. */
interface Listed {
  readonly etag: string | null;
  readonly tools: readonly Tool[];
  readonly byName: ReadonlyMap<string, ListedOperation>;
}

const NOTHING: Listed = { etag: null, tools: [], byName: new Map() };

/**
 * The operations of the installed connectors as tools, for every caller. The sidecar decides at each run if credential,
 * contract and approval allow it, and records that.
 */
export function connectorTools(ports: ConnectorToolsPorts): ToolSource {
  const { sidecar } = ports;
  let held = NOTHING;
  const refreshList = async (signal: AbortSignal): Promise<Listed> => {
    const list = await sidecar.operations(held.etag, 0, signal);
    if (!list.ok) throw new Error(`The operations of connectors cannot be listed: ${list.error.message}`);
    if (list.value !== null) held = indexOperations(list.value);
    return held;
  };
  return {
    prefix: CONNECTOR_TOOL_PREFIX,
    tools: async (_caller, signal) => (await refreshList(signal)).tools,
    async call(call) {
      const operation = held.byName.get(call.tool) ?? (await refreshList(call.signal)).byName.get(call.tool);
      return operation === undefined ? noSuchTool(call.tool) : runTool(sidecar, operation, call);
    },
    watch(onChange) {
      const ended = new AbortController();
      void watchList(ports, onChange, ended.signal);
      return () => ended.abort();
    },
  };
}

/** When an unavailable list becomes available, this is reported as a change: clients that asked meanwhile did not get these tools. */
async function watchList(
  { sidecar, pause }: ConnectorToolsPorts,
  onChange: () => void,
  signal: AbortSignal,
): Promise<void> {
  let known: string | null = null;
  let hasFailed = false;
  while (!signal.aborted) {
    const list = await sidecar.operations(known, known === null ? 0 : WATCH_SECONDS, signal);
    if (signal.aborted) return;
    if (!list.ok) {
      hasFailed = true;
      await pause(RETRY_MS, signal);
      continue;
    }
    if (hasFailed || (known !== null && list.value !== null)) onChange();
    hasFailed = false;
    known = list.value?.etag ?? known;
  }
}

function indexOperations({ etag, operations }: OperationList): Listed {
  const byName = new Map(operations.map((operation) => [connectorToolName(operation, sha256Hex), operation] as const));
  return { etag, byName, tools: Array.from(byName, ([name, operation]) => connectorTool(name, operation)) };
}

async function runTool(sidecar: ConnectorCalls, operation: ListedOperation, call: SourceCall): Promise<CallToolResult> {
  const run = toolRun(call.tool, operation, call.args);
  if (!run.ok) return resultOfFailure(operation, run.error);
  if (operation.approval === 'required') {
    call.progress({ progress: 0, message: 'Waiting for a person to approve this call: svc approvals list' });
  }
  const ran = await sidecar.run(run.value, call.caller.sessionId, call.signal);
  return ran.ok ? resultOfReply(ran.value) : resultOfFailure(operation, ran.error);
}
