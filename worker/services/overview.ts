import { countHostBindings } from '../store/host_bindings.ts';
import { countSecrets } from '../store/secrets.ts';
import { countLiveSidecars } from '../store/sidecars.ts';
import { describeEnterprise, describeUser } from './account.ts';
import { listAuditPage } from './audit_log.ts';
import { type Caller, visibleOwners } from './caller.ts';
import type { ServiceContext } from './service_context.ts';

const RECENT = 20;

/** What the first page shows: who is signed in, how much there is, and the latest events. */
export async function describeOverview(context: ServiceContext, caller: Caller) {
  const owners = visibleOwners(caller);
  const recent = await listAuditPage(context, caller, { limit: RECENT });
  return {
    user: await describeUser(context, caller),
    enterprise: await describeEnterprise(context, caller),
    secrets: await countSecrets(context.database, owners),
    bindings: await countHostBindings(context.database, owners),
    sidecars: await countLiveSidecars(context.database, caller.userId),
    recent: recent.ok ? recent.value.items : [],
  };
}
export type Overview = Awaited<ReturnType<typeof describeOverview>>;
