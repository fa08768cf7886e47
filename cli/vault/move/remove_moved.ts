import { CliError } from '../../exit_codes.ts';
import type { HttpClient } from '../../terminal/http_client.ts';
import type { MoveItem } from './move_plan.ts';
import type { VaultContents } from './vault_contents.ts';

/** What was removed here, and why the rest was not. */
export interface Removal {
  readonly removed: readonly MoveItem[];
  readonly kept: readonly { readonly item: MoveItem; readonly why: string }[];
}

/** What refers to secrets is removed before them. */
const ORDER = ['mcp_server', 'connector', 'binding', 'client_certificate', 'tunnel_host', 'secret'] as const;
const ROUTES = {
  mcp_server: '/v1/mcp-servers',
  connector: '/v1/connectors',
  binding: '/v1/host-bindings',
  client_certificate: '/v1/client-certificates',
  tunnel_host: '/v1/tunnel-hosts',
  secret: '/v1/secrets',
} as const;

/**
 * Removes here what was proven to be there. `checked` is what was compared, `now` what is here at this moment: what was changed in
 * between stays, because the other vault has not got the change.
 */
export async function removeMoved(
  client: HttpClient,
  items: readonly MoveItem[],
  checked: VaultContents,
  now: VaultContents,
): Promise<Removal> {
  const [before, after] = [marksOf(checked), marksOf(now)];
  const removed: MoveItem[] = [];
  const kept: { item: MoveItem; why: string }[] = [];
  for (const kind of ORDER) {
    for (const item of items.filter((each) => each.kind === kind)) {
      if (before.get(item.id) !== after.get(item.id)) {
        kept.push({ item, why: 'it was changed here meanwhile' });
        continue;
      }
      const why = await removeOne(client, item);
      if (why === null) removed.push(item);
      else kept.push({ item, why });
    }
  }
  return { removed, kept };
}

async function removeOne(client: HttpClient, { kind, id }: MoveItem): Promise<string | null> {
  try {
    await client.callEmpty('DELETE', `${ROUTES[kind]}/${encodeURIComponent(id)}`);
    return null;
  } catch (error) {
    // Something else may use it, such as a binding of the enterprise.
    if (error instanceof CliError && error.apiCode !== null) return error.message;
    throw error;
  }
}

/** What changes whenever a thing does, by its id. */
function marksOf(contents: VaultContents): ReadonlyMap<string, string> {
  return new Map([
    ...contents.secrets.map(({ id, version }) => [id, String(version)] as const),
    ...contents.bindings.map(({ id, updated_at: at }) => [id, at] as const),
    ...contents.tunnelHosts.map(({ id, host }) => [id, host] as const),
    // A changed one has another id.
    ...(contents.certificates ?? []).map(({ id, host }) => [id, host] as const),
    ...contents.connectors.map(({ id, updated_at: at, credential }) => [id, `${at} ${credential.updated_at}`] as const),
    ...contents.servers.map(({ id, revision, credentials }) => {
      const set = credentials.map(({ name, updated_at: at }) => `${name} ${at}`);
      return [id, [revision, ...set].join(' ')] as const;
    }),
  ]);
}
