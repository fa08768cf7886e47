import type { CallToolResult, Tool } from '@modelcontextprotocol/server';
import { runInputs } from '../../shared/connect/input_schema.ts';
import { formatToolName } from '../../shared/mcp/tool_names.ts';
import type { RunRequest } from '../../shared/wire/connectors/connectors.ts';
import type { ListedOperation } from '../../shared/wire/connectors/connector_operations.ts';
import type { ConnectorCalls, OperationList } from '../sidecar/connector_calls.ts';
import type { LocalApiFailure } from '../sidecar/local_api.ts';
import { resultOfFailure, resultOfReply } from './connector_results.ts';
import { toShownDefinition } from '../../shared/mcp/show_definition.ts';
import type { SourceCall, ToolSource } from '../tool_source.ts';
import { sha256Hex } from '../../machine/sha256.ts';

/** The ports of the connectors' tools. */
interface ConnectorToolsPorts {
  readonly sidecar: ConnectorCalls;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The tools of connectors are called `svc_run__<publisher>_<name>__<operation>`; `_` is in no server's name. */
const OWN_NAME = 'svc_run';
const CONNECTOR_TOOL_PREFIX = `${OWN_NAME}__`;
const PLAIN_FQN = /^[a-z0-9-]+\/[a-z0-9-]+$/;

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
      return operation === undefined ? noSuchToolResult(call.tool) : runTool(sidecar, operation, call);
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
  const byName = new Map(operations.map((operation) => [toolName(operation), operation] as const));
  return { etag, byName, tools: Array.from(byName, ([name, operation]) => toolOf(name, operation)) };
}

/** A publisher or name with other characters is replaced by its digest. */
function toolName({ connector_fqn: fqn, operation }: ListedOperation): string {
  const text = PLAIN_FQN.test(fqn) ? `${fqn.replace('/', '_')}__${operation}` : `${fqn}/${operation}`;
  return formatToolName(OWN_NAME, text, sha256Hex);
}

function toolOf(name: string, operation: ListedOperation): Tool {
  const title = `${operation.connector_title}: ${operation.summary || operation.operation}`;
  return toShownDefinition<Tool>({
    name,
    title,
    description: descriptionOf(operation),
    inputSchema: { ...operation.input_schema, type: 'object' },
    annotations: { title, ...hintsOf(operation.effect), openWorldHint: true },
  });
}

/** For a write it is unknown if it only adds or also destroys. */
function hintsOf(effect: ListedOperation['effect']): NonNullable<Tool['annotations']> {
  if (effect === 'read') return { readOnlyHint: true, destructiveHint: false };
  return effect === 'write' ? { readOnlyHint: false } : { readOnlyHint: false, destructiveHint: true };
}

const EFFECT_TEXTS: Readonly<Record<ListedOperation['effect'], string>> = {
  read: 'It only reads.',
  write: 'It changes data.',
  delete: 'It deletes data.',
  spend: 'It spends money.',
  'external-send': 'It sends something to others.',
};

function descriptionOf(operation: ListedOperation): string {
  const { summary, description, effect, approval, connector_fqn: fqn } = operation;
  const approvalText = approval === 'required' ? ' Each call needs the approval of a person.' : '';
  const about = `Operation ${operation.operation} of the connector ${fqn}. ${EFFECT_TEXTS[effect]}${approvalText}`;
  return [summary, description, about].filter((text) => text !== '').join('\n\n');
}

async function runTool(sidecar: ConnectorCalls, operation: ListedOperation, call: SourceCall): Promise<CallToolResult> {
  const { args, host } = runInputs(inputsOf(operation), call.args);
  if (host !== undefined && typeof host !== 'string') return resultOfFailure(operation, hostIsNoText());
  if (operation.approval === 'required') {
    call.progress({ progress: 0, message: 'Waiting for a person to approve this call: svc approvals list' });
  }
  const request: RunRequest = {
    connector_fqn: operation.connector_fqn,
    operation: operation.operation,
    tool: call.tool,
    args: { ...args },
    ...(host === undefined ? {} : { host }),
  };
  const ran = await sidecar.run(request, call.caller.sessionId, call.signal);
  return ran.ok ? resultOfReply(ran.value) : resultOfFailure(operation, ran.error);
}

function inputsOf({ input_names: inputNames, host_property: hostProperty }: ListedOperation): {
  readonly inputNames: Readonly<Record<string, string>>;
  readonly hostProperty: string | null;
} {
  return { inputNames, hostProperty };
}

function hostIsNoText(): LocalApiFailure {
  const fields = [{ field: 'host', message: 'must be a text' }];
  return { code: 'invalid_args', message: 'host must be a text', details: { fields } };
}

function noSuchToolResult(tool: string): CallToolResult {
  const text = `The tool ${JSON.stringify(tool.slice(0, 80))} no longer exists: list the tools again.`;
  return { isError: true, content: [{ type: 'text', text }] };
}
