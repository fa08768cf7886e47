import { bindingShareProblem, connectorShareProblem } from '../../../shared/sharing/share_rules.ts';
import type { Caller } from '../../kernel/caller.ts';
import { readAll } from '../../kernel/read_all.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listAllHostBindings } from '../bindings/host_bindings.ts';
import { listConnectorPage } from '../connectors/connectors.ts';
import { listAllMcpServers } from '../mcp/mcp_servers.ts';
import { shareProblem } from './received.ts';

/** Something that a person may share, with a title to choose it by. */
interface Sharable {
  readonly value: string;
  readonly title: string;
}

/** What the caller may share, by its kind. */
export async function listSharable(
  context: ServiceContext,
  caller: Caller,
): Promise<Readonly<Record<'bindings' | 'connectors' | 'servers', readonly Sharable[]>>> {
  const [bindings, connectors, servers] = await Promise.all([
    listAllHostBindings(context, [caller.userId]),
    readAll((query) => listConnectorPage(context, caller, { ...query, owner: 'personal' })),
    listAllMcpServers(context, [caller.userId]),
  ]);
  return {
    bindings: bindings
      .filter((binding) => bindingShareProblem(binding) === null)
      .map(({ id, host, effect = '' }) => ({ value: id, title: `${host} (${effect})` })),
    connectors: connectors.items
      .filter(({ owner, fqn, active }) => connectorShareProblem({ owner, fqn, isActive: active }) === null)
      .map(({ id, fqn }) => ({ value: id, title: fqn })),
    servers: servers
      .filter((row) => shareProblem({ kind: 'mcp_server', row }) === null)
      .map(({ id, name }) => ({ value: id, title: name })),
  };
}
