import { REQUEST_DECISIONS } from '../../../shared/report/request_decision.ts';
import { matchSpec, type SpecMatches } from '../../../shared/explain/spec_matches.ts';
import { type ConnectorSpecRecord, toConnectorSpec } from '../../../shared/wire/connectors/connector_spec.ts';
import { MAX_PAGE } from '../../../shared/wire/primitives.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listAuditPage } from '../audit/audit_log.ts';

/** Which of the newest requests the operations of a spec would have matched; of a spec with many hosts, of its first few. */
export async function matchNewest(
  context: ServiceContext,
  caller: Caller,
  record: ConnectorSpecRecord,
): Promise<SpecMatches> {
  const spec = toConnectorSpec(record);
  const type = [...REQUEST_DECISIONS.keys()].join(',');
  const hosts = [...new Set([...spec.hosts, ...spec.operations.flatMap((operation) => operation.hosts ?? [])])];
  const pages = await Promise.all(
    hosts.slice(0, MOST_HOSTS).map((host) => listAuditPage(context, caller, { type, host, limit: MAX_PAGE })),
  );
  const requests = pages
    .flatMap((page) => (page.ok ? page.value.items : []))
    .flatMap(({ data }) => {
      const method = data['svc.proxy.method'];
      const host = data['svc.proxy.upstream.host'];
      const path = data['svc.proxy.upstream.path'];
      return method === undefined || host === undefined || path === undefined ? [] : [{ method, host, path }];
    });
  return matchSpec(spec, requests);
}

const MOST_HOSTS = 5;
