import { findPlaces, type Place } from '../../../shared/report/find_places.ts';
import type { Caller } from '../../kernel/caller.ts';
import { readAll } from '../../kernel/read_all.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { getApproval } from '../approvals/approvals.ts';
import { listHostBindingPage } from '../bindings/host_bindings.ts';
import { listConnectorPage } from '../connectors/connectors.ts';
import { getAuditEvent, listAuditPage } from './audit_log.ts';
import { listMcpServerPage } from '../mcp/mcp_servers.ts';
import { listSecretPage } from '../vault/secrets.ts';

/** The places that fit a text, and whether everything was looked through. */
export interface Found {
  readonly places: readonly Place[];
  readonly isWhole: boolean;
}

/** The page about a pasted id of an event, a session or an approval; null for any other text, and if the log has none. */
async function placeOfId(context: ServiceContext, caller: Caller, text: string): Promise<Place | null> {
  if (/^evt_\w+$/.test(text)) {
    const event = await getAuditEvent(context, caller, text);
    return event.ok ? { kind: 'page', name: `Event ${text}`, also: event.value.type, path: `/audit/${text}` } : null;
  }
  if (/^ses_[\w-]+$/.test(text)) {
    const events = await listAuditPage(context, caller, { session: text, limit: 1 });
    const isKnown = events.ok && events.value.items.length > 0;
    return isKnown ? { kind: 'page', name: `Session ${text}`, also: '', path: `/audit/sessions/${text}` } : null;
  }
  if (!/^apr_\w+$/.test(text)) return null;
  const approval = await getApproval(context, caller, text);
  if (!approval.ok) return null;
  return { kind: 'page', name: `Approval ${text}`, also: approval.value.state, path: `/approvals/${text}` };
}

/** Searches pages and services, and the secrets, bindings, connectors and MCP servers that the caller sees. Values are not searched. */
export async function findAll(
  context: ServiceContext,
  caller: Caller,
  search: {
    readonly text: string;
    readonly pages: readonly Place[];
    /** What could be connected; what is there comes first. */
    readonly services: readonly Place[];
    readonly limit: number;
  },
): Promise<Found> {
  const { text, pages, services, limit } = search;
  const named = await placeOfId(context, caller, text.trim());
  if (named !== null) return { places: [named], isWhole: true };
  // Without words, only the pages: a list of everything helps nobody.
  if (text.trim() === '') return { places: findPlaces('', pages, limit), isWhole: true };
  const [secrets, bindings, connectors, servers] = await Promise.all([
    readAll((query) => listSecretPage(context, caller, query)),
    readAll((query) => listHostBindingPage(context, caller, query)),
    readAll((query) => listConnectorPage(context, caller, query)),
    readAll((query) => listMcpServerPage(context, caller, query)),
  ]);
  const places: Place[] = [
    ...pages,
    ...secrets.items.map(({ ref, path, description }) => ({
      kind: 'secret' as const,
      name: ref,
      also: description ?? '',
      path: `/secrets?q=${encodeURIComponent(path)}`,
    })),
    ...bindings.items.map(({ id, host, credential_ref: ref, description, scheme }) => ({
      kind: 'binding' as const,
      name: host,
      also: `${ref} ${scheme} ${description ?? ''}`,
      path: `/bindings/${id}`,
    })),
    ...connectors.items.map(({ id, fqn, title, hosts }) => ({
      kind: 'connector' as const,
      name: fqn,
      also: `${title} ${hosts.join(' ')}`,
      path: `/connectors/${id}`,
    })),
    ...servers.items.map(({ id, name, description, registry_id: registryId }) => ({
      kind: 'mcp_server' as const,
      name,
      also: `${description} ${registryId ?? ''}`,
      path: `/mcp-servers/${id}`,
    })),
    ...services,
  ];
  const isWhole = [secrets, bindings, connectors, servers].every((list) => list.isWhole);
  return { places: findPlaces(text, places, limit), isWhole };
}
