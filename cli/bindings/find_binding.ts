import type { HostBindingRecord } from '../../shared/wire/host_binding.ts';
import { hostBindingsPage } from '../../shared/wire/host_bindings.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../terminal/http_client.ts';

/** Every binding of the caller. */
export function listAllBindings(client: HttpClient, owner?: string): Promise<HostBindingRecord[]> {
  return fetchAllPages(client, '/v1/host-bindings', hostBindingsPage, { owner });
}

/** The bindings with this host or id. */
export async function findBindings(client: HttpClient, hostOrId: string): Promise<HostBindingRecord[]> {
  const wanted = hostOrId.toLowerCase();
  const found = (await listAllBindings(client)).filter((record) => record.id === hostOrId || record.host === wanted);
  if (found.length > 0) return found;
  throw new CliError(EXIT.failed, `no binding has the host or id ${JSON.stringify(hostOrId)}`, [
    '`svc binding list` shows them.',
  ]);
}

/** Throws if several bindings have the host: the caller must then give an id. */
export async function findBinding(client: HttpClient, hostOrId: string): Promise<HostBindingRecord> {
  const found = await findBindings(client, hostOrId);
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  const lines = found.map((record) => `${record.id}  ${record.owner}  ${record.credential_ref}`);
  throw new CliError(EXIT.failed, `${found.length} bindings have the host ${hostOrId}: give the id of one`, lines);
}
