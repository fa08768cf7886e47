import { err, ok, type Result } from '../../shared/model/result.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import type { Fetched } from './registry.ts';
import { askRegistry, type RegistryFailure } from './registry_client.ts';

/** How long a caller waits for the registry. */
const PATIENCE_MS = 8_000;
/** Shorter if an older reply is cached. */
const PATIENCE_WITH_STALE_MS = 2_500;

type Asking = Pick<MarketplaceContext, 'registry' | 'outbound' | 'clock' | 'defer'>;
type Answer = Result<Fetched, RegistryFailure>;

/** A reply of the registry, and whether it is stale because the registry does not answer. */
export interface Page extends Fetched {
  readonly isStale: boolean;
}

/** A reply not older than 15 minutes, fetched once for concurrent callers. */
export async function freshPage(context: Asking, url: string, patienceMs = PATIENCE_MS): Promise<Answer> {
  const { registry, clock } = context;
  const look = (): Answer | null => {
    const fresh = registry.responses.findFresh(url, clock.now());
    if (fresh !== null) return ok(fresh);
    const problem = registry.responses.problem(url, clock.now(), registry.mostCalls);
    return problem === null ? null : err(problem);
  };
  const work = async () => {
    registry.responses.countCall(clock.now());
    registry.responses.note(url, await askRegistry(context.outbound, url, clock.now()), clock.now());
  };
  return (await registry.flights.join(context, { key: url, patienceMs, look, work })) ?? err(LATE);
}

/** The same, or a cached older reply if the registry gives none. */
export async function fetchAnyPage(context: Asking, url: string): Promise<Result<Page, RegistryFailure>> {
  const held = context.registry.responses.find(url);
  const fresh = await freshPage(context, url, held === null ? PATIENCE_MS : PATIENCE_WITH_STALE_MS);
  if (fresh.ok) return ok({ ...fresh.value, isStale: false });
  return held === null || fresh.error.reason === 'not_found' ? fresh : ok({ ...held, isStale: true });
}

const LATE: RegistryFailure = {
  reason: 'unavailable',
  message: 'the registry did not answer in time',
  retryAfterSeconds: null,
};
