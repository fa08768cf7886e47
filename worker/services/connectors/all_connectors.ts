import {
  type ConnectorPlace,
  type ConnectorRow,
  listWholeConnectors,
  type WithCredential,
} from '../../store/connectors.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** A spec has up to a megabyte, and a reply of the database up to ten. */
const ROWS_PER_READ = 8;

/**
 * Every connector of these owners with its spec, or those of a host alone; read in pages, for a reply of the database has a
 * largest size.
 */
export async function allConnectors(
  context: ServiceContext,
  ownerIds: readonly string[],
  host?: string,
): Promise<WithCredential<ConnectorRow>[]> {
  const found: WithCredential<ConnectorRow>[] = [];
  let after: ConnectorPlace | null = null;
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
