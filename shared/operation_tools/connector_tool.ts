import { runInputs } from '../connect/input_schema.ts';
import { err, ok, type Result } from '../model/result.ts';
import type { ListedOperation } from '../wire/connectors/connector_operations.ts';
import type { RunRequest } from '../wire/connectors/connectors.ts';
import { toShownDefinition } from '../mcp/show_definition.ts';
import { formatToolName } from '../mcp/tool_names.ts';
import type { ToolProblem } from './tool_result.ts';

/** The tools of connectors are called `svc_run__<publisher>_<name>__<operation>`; `_` is in no server's name. */
const OWN_NAME = 'svc_run';
export const CONNECTOR_TOOL_PREFIX = `${OWN_NAME}__`;
const PLAIN_FQN = /^[a-z0-9-]+\/[a-z0-9-]+$/;

/** The text of which a long name has a digest. A publisher or name with other characters is replaced by its digest. */
export function toolText({ connector_fqn: fqn, operation }: ListedOperation): string {
  return PLAIN_FQN.test(fqn) ? `${fqn.replace('/', '_')}__${operation}` : `${fqn}/${operation}`;
}

/** The name of an operation's tool. `sha256Hex` is called with {@link toolText} at most. */
export function connectorToolName(operation: ListedOperation, sha256Hex: (text: string) => string): string {
  return formatToolName(OWN_NAME, toolText(operation), sha256Hex);
}

/** An operation of an installed connector as an MCP tool. */
export function connectorTool(name: string, operation: ListedOperation) {
  const title = `${operation.connector_title}: ${operation.summary || operation.operation}`;
  return toShownDefinition({
    name,
    title,
    description: descriptionOf(operation),
    inputSchema: { ...operation.input_schema, type: 'object' as const },
    annotations: { title, ...hintsOf(operation.effect), openWorldHint: true },
  });
}

/** For a write it is unknown if it only adds or also destroys. */
function hintsOf(effect: ListedOperation['effect']): { readOnlyHint: boolean; destructiveHint?: boolean } {
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

/** The run that a call of a tool asks for. Refuses with `invalid_args`. */
export function toolRun(
  tool: string,
  operation: ListedOperation,
  given: Readonly<Record<string, unknown>>,
): Result<RunRequest, ToolProblem> {
  const inputs = { inputNames: operation.input_names, hostProperty: operation.host_property };
  const { args, host } = runInputs(inputs, given);
  if (host !== undefined && typeof host !== 'string') return err(hostIsNoText());
  return ok({
    connector_fqn: operation.connector_fqn,
    operation: operation.operation,
    tool,
    args: { ...args },
    ...(host === undefined ? {} : { host }),
  });
}

function hostIsNoText(): ToolProblem {
  const fields = [{ field: 'host', message: 'must be a text' }];
  return { code: 'invalid_args', message: 'host must be a text', details: { fields } };
}

/** Says that a tool is gone. */
export function noSuchTool(tool: string) {
  const text = `The tool ${JSON.stringify(tool.slice(0, 80))} no longer exists: list the tools again.`;
  return { isError: true, content: [{ type: 'text' as const, text }] };
}
