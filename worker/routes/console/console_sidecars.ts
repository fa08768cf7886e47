import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { SidecarRecord } from '../../../shared/wire/sidecars.ts';
import { EMPTY_FORM } from '../../pages/components/form_field.ts';
import { sidecarRevocationPage, sidecarsPage } from '../../pages/people/sidecars.ts';
import type { Caller } from '../../kernel/caller.ts';
import { listSidecarPage, removeSidecar } from '../../services/sidecars/sidecars.ts';
import type { AppContext } from '../http/app_env.ts';
import { done, forChange, formAgain, forReader, notConfirmed, problem, refusedForm } from './console.ts';
import { findListed } from './find_listed.ts';
import { consolePage } from './pages.ts';

const SHOWN = 100;

/** `GET /sidecars` */
export const getSidecarsPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const { cursor, done: code } = c.req.query();
  const sidecars = await listSidecarPage(context, caller, { limit: SHOWN, cursor });
  if (!sidecars.ok) return problem(c, caller, sidecars.error);
  const view = { sidecars: sidecars.value, cursor, done: code, nowMs: context.clock.now() };
  return consolePage(c, caller, sidecarsPage(view));
});

/** `GET /sidecars/{id}/revoke`: asks. */
export const askSidecarRevocation = forReader(async (c, caller) => {
  const sidecar = await liveSidecar(c, caller);
  if (!sidecar.ok) return problem(c, caller, sidecar.error);
  return consolePage(c, caller, sidecarRevocationPage(sidecar.value, EMPTY_FORM));
});

/** `POST /sidecars/{id}/revoke` */
export const submitSidecarRevocation = forChange(async (c, caller, { confirm = '' }) => {
  const sidecar = await liveSidecar(c, caller);
  if (!sidecar.ok) return problem(c, caller, sidecar.error);
  const { id, name } = sidecar.value;
  if (confirm.trim() !== name)
    return formAgain(c, caller, sidecarRevocationPage(sidecar.value, notConfirmed(name, 'revoked')));
  const revoked = await removeSidecar(c.get('context'), caller, id);
  if (revoked.ok) return done(c, '/sidecars', 'sidecar_revoked');
  return formAgain(c, caller, sidecarRevocationPage(sidecar.value, refusedForm({}, revoked.error)), revoked.error);
});

async function liveSidecar(c: AppContext, caller: Caller): Promise<Result<SidecarRecord, ApiError>> {
  const id = c.req.param('id') ?? '';
  const found = await findListed(id, (query) => listSidecarPage(c.get('context'), caller, query));
  if (!found.ok) return found;
  if (found.value !== null && found.value.revoked_at === null) return ok(found.value);
  return err(apiError('not_found', `there is no live sidecar ${id}: the page Sidecars lists yours`));
}
