import {
  type ConnectorPosition,
  type ConnectorRow,
  listWholeConnectors,
  type WithCredential,
} from '../../store/connectors.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** A spec has up to a megabyte, and a database reply at most ten. */
const ROWS_PER_READ = 8;

/**
 * All connectors of these owners with their specs, optionally for one host, read in pages because a database reply is
 * limited in size.
 */
export async function listAllConnectors(
  context: ServiceContext,
  ownerIds: readonly string[],
  host?: string,
): Promise<WithCredential<ConnectorRow>[]> {
  const found: WithCredential<ConnectorRow>[] = [];
  let after: ConnectorPosition | null = null;
  for (;;) {
    const rows: WithCredential<ConnectorRow>[] = await listWholeConnectors(context.database, {
      ownerIds,
      host,
      after,
      limit: ROWS_PER_READ,
    });
    found.push(...rows);
    after = rows.at(-1)?.connector ?? null;
    if (rows.length < ROWS_PER_READ) return found;
  }
}
