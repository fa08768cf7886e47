import { canonicalJson } from '../../../shared/audit/canonical_json.ts';
import { commandDangers } from '../../../shared/mcp/command_dangers.ts';
import type { Danger } from '../../../shared/mcp/dangers/danger.ts';
import { referenceProblem } from '../../../shared/mcp/references.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { withOwnId } from '../../../shared/wire/mcp/mcp_references.ts';
import { toMcpServer, type ValidMcpServer } from '../../../shared/wire/mcp/mcp_servers.ts';
import { toApiDanger } from './mcp_server_records.ts';
import type { McpConfiguration } from './mcp_configuration.ts';
import type { FieldProblem } from '../../../shared/model/problem.ts';

/**
 * Makes the configuration of the server with this id from an input: applies its own references and the defaults of its
 * mode, and checks that its command may be run. Refuses with `invalid_input`.
 */
export function settleConfiguration(
  input: ValidMcpServer,
  target: { readonly id: string; readonly registryId: string | null },
  before: McpConfiguration | null,
): Result<McpConfiguration, ApiError> {
  const own = withOwnId(input, target.id);
  if (!own.ok) return err(invalidFields(own.error));
  const transport = own.value.mode === 'remote' ? (own.value.transport ?? 'streamable-http') : null;
  const registryId = input.registry_id === undefined ? target.registryId : input.registry_id;
  const configuration = { ...own.value, transport, registry_id: registryId };
  const problem = configurationProblem(configuration, target.id, before);
  return problem === null ? ok(configuration) : err(problem);
}

/**
 * Why a configuration must not be stored; null if it may. `before`: the current one. A server whose command was
 * accepted once and is refused now can still be disabled.
 */
export function configurationProblem(
  configuration: McpConfiguration,
  id: string,
  before: McpConfiguration | null = null,
): ApiError | null {
  const misplaced = referenceProblem(toMcpServer({ ...configuration, id, revision: 1 }));
  if (misplaced !== null) {
    const [field = '', ...rest] = misplaced.split(' ');
    return invalidFields([{ field: field.replaceAll('[', '.').replaceAll(']', ''), message: rest.join(' ') }]);
  }
  if (configuration.mode !== 'local' || (!configuration.enabled && startsTheSame(configuration, before))) return null;
  const refused = commandDangers(configuration.command, configuration.env).filter(
    ({ severity }) => severity === 'refuse',
  );
  return refused.length === 0 ? null : dangersError(refused);
}

function startsTheSame({ command, env }: McpConfiguration, before: McpConfiguration | null): boolean {
  return before !== null && canonicalJson([command, env]) === canonicalJson([before.command, before.env]);
}

function dangersError(dangers: readonly Danger[]): ApiError {
  const fields = dangers.map(({ code, message }) => {
    return { field: code === 'environment_variable' ? 'env' : 'command', message };
  });
  const message = `the server ${dangers.map((danger) => danger.message).join('; ')}`;
  return apiError('invalid_input', message, { fields, dangers: dangers.map(toApiDanger) });
}

export function invalidFields(fields: readonly FieldProblem[]): ApiError {
  const message = fields.map((problem) => `${problem.field} ${problem.message}`).join('; ');
  return apiError('invalid_input', message, { fields });
}
