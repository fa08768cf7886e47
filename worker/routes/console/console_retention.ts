import { err, ok, type Result } from '../../../shared/model/result.ts';
import { auditPruneInput, type AuditPruneReply } from '../../../shared/wire/audit_events.ts';
import { apiError, type ApiError, ERROR_STATUS } from '../../../shared/wire/errors.ts';
import { EMPTY_FORM } from '../../pages/components/form_field.ts';
import { eventRemovalPage, type Removal, RETENTION_PATH, retentionPage } from '../../pages/audit/retention.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { pruneInTurn } from '../../services/audit/audit_pruning.ts';
import { describeRetention } from '../../services/audit/retention_details.ts';
import type { AppContext } from '../http/app_env.ts';
import { confirmedChange } from './confirmed_change.ts';
import { forReader, type PageEntry, toRefusedForm } from './console.ts';
import { consolePage } from './pages.ts';

/** `GET /audit/retention`: how long events are kept; with `before`, how many would be removed. */
const getRetention = forReader(async (c, caller) => {
  const context = c.get('context');
  const { before = '', done } = c.req.query();
  const counted = before === '' ? null : await countRemoval(c, caller, before);
  const refused = counted?.ok === false ? counted.error : null;
  const view = {
    details: await describeRetention(context, caller),
    isAdmin: mayActAs(caller, 'admin'),
    isLocal: context.local !== null,
    form: refused === null ? { ...EMPTY_FORM, values: { before } } : toRefusedForm({ before }, refused),
    removal: counted?.ok === true ? counted.value : null,
    done,
  };
  return consolePage(c, caller, retentionPage(view), refused === null ? 200 : ERROR_STATUS[refused.code]);
});

/** What would be removed before a day begins in UTC. */
async function countRemoval(c: AppContext, caller: Caller, day: string): Promise<Result<Removal, ApiError>> {
  const input = auditPruneInput.safeParse({ before: `${day}T00:00:00Z`, dry_run: true });
  if (!input.success) return err(noDay());
  const counted = await pruneInTurn(c.get('context'), caller, input.data);
  return counted.ok ? ok({ day, counted: counted.value }) : counted;
}

function noDay(): ApiError {
  const message = 'is not a day: write it as 2026-01-31';
  return apiError('invalid_input', `before ${message}`, { fields: [{ field: 'before', message }] });
}

/** `/audit/retention/remove` */
const removal = confirmedChange<Removal, AuditPruneReply>({
  find: (c, caller, { before = '' }) => countRemoval(c, caller, before),
  name: ({ day }) => day,
  page: eventRemovalPage,
  make: (context, caller, { counted: { before } }) => pruneInTurn(context, caller, { before, dry_run: false }),
  happened: 'removed',
  next: (_, { broken, finished }) => [RETENTION_PATH, doneCode(broken.length > 0, finished)],
});

function doneCode(isBroken: boolean, finished: boolean): string {
  if (isBroken) return 'events_removed_but_broken';
  return finished ? 'events_removed' : 'events_partly_removed';
}

export const RETENTION_PAGES: readonly PageEntry[] = [
  ['get', RETENTION_PATH, getRetention],
  ['get', `${RETENTION_PATH}/remove`, removal.ask],
  ['post', `${RETENTION_PATH}/remove`, removal.submit],
];
