import type { BindingTemplate } from '../../../shared/wire/binding_template.ts';
import { covers } from '../../../shared/net/host_pattern.ts';
import { findFittingTemplates } from '../../../shared/report/seal_advice.ts';
import {
  ownReleases,
  type Sealability,
  sealabilityOf,
  UNSEALED_EVENT,
  type UnsealedRelease,
} from '../../../shared/report/sealability.ts';
import type { SecretRecord } from '../../../shared/wire/secrets.ts';
import { listAuditPage } from './audit_log.ts';
import { type Caller, visibleOwners } from '../../kernel/caller.ts';
import { readAll } from '../../kernel/read_all.ts';
import { listConnectorPage } from '../connectors/connectors.ts';
import { listAllHostBindings } from '../bindings/host_bindings.ts';
import { listSecretPage } from '../vault/secrets.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listSidecarPage } from '../sidecars/sidecars.ts';

/** A credential that is not sealed, and what would seal it. */
export interface OpenCredential extends Sealability {
  readonly templates: readonly BindingTemplate[];
  /** Installed connectors for the host that it was released for. */
  readonly connectors: readonly { readonly id: string; readonly fqn: string }[];
}

export interface SealabilityReport {
  /** Released credentials come first. */
  readonly open: readonly OpenCredential[];
  readonly sealed: readonly Sealability[];
  /** Newest first, of current and of earlier values. */
  readonly releases: readonly UnsealedRelease[];
  /** False if there is more than was read. */
  readonly isWhole: boolean;
}

/** The data of `svc report sealability` for the credentials of the caller and its enterprise, by the same code. */
export async function reportSealability(
  context: ServiceContext,
  caller: Caller,
  templates: readonly BindingTemplate[],
): Promise<SealabilityReport> {
  const secrets = await readAll((query) => listSecretPage(context, caller, query));
  const connectors = await readAll((query) => listConnectorPage(context, caller, query));
  const bindings = await listAllHostBindings(context, visibleOwners(caller));
  const { releases, ...released } = await readReleases(context, caller);
  const all = sealabilityOf({ secrets: secrets.items, bindings, connectors: connectors.items, releases, templates });
  const described = new Map(secrets.items.map((secret) => [keyOf(secret), secret]));
  const open = all
    .filter(({ sealed }) => !sealed)
    .map((item) => {
      const host = item.unsealed?.host ?? null;
      const onHost = connectors.items.filter(({ hosts }) => host !== null && hosts.some((each) => covers(each, host)));
      const fitting = findFittingTemplates(
        described.get(keyOf(item)) ?? { ...item, description: null },
        host,
        templates,
      );
      return { ...item, templates: fitting, connectors: onHost.map(({ id, fqn }) => ({ id, fqn })) };
    });
  return {
    open: open.toSorted((a, b) => Number(a.unsealed === null) - Number(b.unsealed === null)),
    sealed: all.filter(({ sealed }) => sealed),
    releases,
    isWhole: [secrets, connectors, released].every(({ isWhole }) => isWhole),
  };
}

/** How many credentials were released in plaintext and are still current. A single read if there were none. */
export async function countHandedOut(context: ServiceContext, caller: Caller): Promise<number> {
  const newest = await listAuditPage(context, caller, { limit: 1, type: UNSEALED_EVENT });
  if (!newest.ok || newest.value.items.length === 0) return 0;
  const secrets = await readAll((query) => listSecretPage(context, caller, query));
  const { releases } = await readReleases(context, caller);
  const all = sealabilityOf({ secrets: secrets.items, bindings: [], connectors: [], releases, templates: [] });
  return all.filter(({ unsealed }) => unsealed !== null).length;
}

/** The releases by the caller's own sidecars, newest first. */
async function readReleases(
  context: ServiceContext,
  caller: Caller,
): Promise<Pick<SealabilityReport, 'releases' | 'isWhole'>> {
  const events = await readAll((query) => listAuditPage(context, caller, { ...query, type: UNSEALED_EVENT }));
  const sidecars = await readAll((query) => listSidecarPage(context, caller, query));
  const ids = sidecars.items.map(({ id }) => id);
  return { releases: ownReleases(events.items, ids), isWhole: events.isWhole && sidecars.isWhole };
}

function keyOf({ owner, path }: Pick<SecretRecord, 'owner' | 'path'>): string {
  return `${owner} ${path}`;
}
