import type { Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { SidecarRecord } from '../../../shared/wire/sidecars.ts';
import { sidecarRevocationPage, sidecarsPage } from '../../pages/people/sidecars.ts';
import type { Caller } from '../../kernel/caller.ts';
import { listSidecarPage, removeSidecar } from '../../services/sidecars/sidecars.ts';
import type { AppContext } from '../http/app_env.ts';
import { confirmedChange } from './confirmed_change.ts';
import { forReader, problem } from './console.ts';
import { findListed } from './find_listed.ts';
import { consolePage } from './pages.ts';

const SHOWN = 100;

/** `GET /sidecars` */
export const getSidecarsPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const { cursor, done: code } = c.req.query();
  const sidecars = await listSidecarPage(context, caller, { limit: SHOWN, cursor });
  if (!sidecars.ok) return problem(c, caller, sidecars.error);
  const [isLocal, nowMs] = [context.local !== null, context.clock.now()];
  const view = { sidecars: sidecars.value, cursor, isLocal, done: code, nowMs };
  return consolePage(c, caller, sidecarsPage(view));
});

/** `/sidecars/{id}/revoke` */
export const sidecarRevocation = confirmedChange({
  find: liveSidecar,
  name: ({ name }) => name,
  page: sidecarRevocationPage,
  make: (context, caller, { id }) => removeSidecar(context, caller, id),
  happened: 'revoked',
  next: () => ['/sidecars', 'sidecar_revoked'],
});

function liveSidecar(c: AppContext, caller: Caller): Promise<Result<SidecarRecord, ApiError>> {
  return findListed(
    c,
    (query) => listSidecarPage(c.get('context'), caller, query),
    (id) => `there is no active sidecar ${id}: the page Sidecars lists yours`,
    (sidecar) => sidecar.revoked_at === null,
  );
}
