import { countHostBindings } from '../../store/host_bindings.ts';
import { countSecrets } from '../../store/secrets.ts';
import { countLiveSidecars } from '../../store/sidecars.ts';
import { describeEnterprise, describeUser } from '../people/account.ts';
import { describeActivity, eventsOfActivity, idsOfActivity } from './activity.ts';
import { countWaiting } from '../approvals/approvals.ts';
import { describeNames, idsIn } from './names.ts';
import { listAuditPage } from './audit_log.ts';
import { type Caller, visibleOwners } from '../../kernel/caller.ts';
import { countHandedOut } from './sealability_report.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listConnectorPage } from '../connectors/connectors.ts';
import { listSidecarPage } from '../sidecars/sidecars.ts';

const RECENT = 12;
const MOST_SIDECARS = 100;
const MOST_CONNECTORS = 20;

/** The data of the first page: the signed-in user, totals, pending work, connected sidecars and the latest events. */
export async function describeOverview(context: ServiceContext, caller: Caller) {
  const owners = visibleOwners(caller);
  const recent = await listAuditPage(context, caller, { limit: RECENT });
  const activity = await describeActivity(context, caller);
  const sidecars = await listSidecarPage(context, caller, { limit: MOST_SIDECARS });
  const connectors = await listConnectorPage(context, caller, { limit: MOST_CONNECTORS });
  const events = recent.ok ? recent.value.items : [];
  return {
    nameOf: await describeNames(
      context,
      caller,
      [...events.flatMap(idsIn), ...idsOfActivity(activity)],
      [...events, ...eventsOfActivity(activity)],
    ),
    isLocal: context.local !== null,
    user: await describeUser(context, caller),
    enterprise: await describeEnterprise(context, caller),
    secrets: await countSecrets(context.database, owners),
    bindings: await countHostBindings(context.database, owners),
    activeConnectors: connectors.ok ? connectors.value.items.filter(({ active }) => active).length : 0,
    sidecars: await countLiveSidecars(context.database, caller.userId),
    sidecarList: sidecars.ok ? sidecars.value.items.filter((sidecar) => sidecar.revoked_at === null) : [],
    pendingApprovals: await countWaiting(context, caller),
    handedOut: await countHandedOut(context, caller),
    activity,
    hasRequests: activity.newest !== null,
    recent: events,
  };
}
export type Overview = Awaited<ReturnType<typeof describeOverview>>;
