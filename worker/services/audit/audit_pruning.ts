import { chainBreak, type ChainHead } from '../../../shared/audit/hash_chain.ts';
import type { ChainBreak } from '../../../shared/model/audit_event.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { AuditPruneInput, AuditPruneReply, BrokenChain } from '../../../shared/wire/audit_events.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import {
  type AuditBeginningRow,
  cutChain,
  dueChains,
  findBeginning,
  firstReceivedFrom,
} from '../../store/audit_beginnings.ts';
import { type AuditEventRow, findHead, listChain, listHeads } from '../../store/audit_events.ts';
import { readBeginning } from './audit_beginning.ts';
import { toStoredEvent } from './audit_log.ts';
import { isSealedHead, sealBeginning } from '../../kernel/audit_seals.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** What is younger is never removed: nobody can remove the events of what they just did, or of a sidecar that still sends. */
export const YOUNGEST_REMOVED_MS = 24 * 3_600_000;

/** How much is done before others have their turn. */
export interface PruneLimits {
  /** How many events are read, checked and removed in one write. */
  readonly eventsPerWrite: number;
  /** Of how many chains at most. */
  readonly chainsPerWrite: number;
  /** How many writes one call makes; a caller goes on with the next. */
  readonly writes: number;
}

/** A write of so many events takes a small part of a second. */
export const PRUNE_LIMITS: PruneLimits = { eventsPerWrite: 500, chainsPerWrite: 20, writes: 10 };

/**
 * Removes the beginning of each of the enterprise's chains: what was received before a time. Refuses with `admin_required`,
 * `invalid_input`.
 */
export async function pruneAudit(
  context: ServiceContext,
  caller: Caller,
  input: AuditPruneInput,
  limits: PruneLimits = PRUNE_LIMITS,
): Promise<Result<AuditPruneReply, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const { enterpriseId, userId } = caller;
  const before = new Date(input.before).toISOString();
  if (Date.parse(before) > context.clock.now() - YOUNGEST_REMOVED_MS) return err(tooYoung());
  const what = { before, dry_run: input.dry_run };
  if (input.dry_run) {
    return ok({ ...what, removed: await countRemovable(context, enterpriseId, before), finished: true, broken: [] });
  }
  const pruned = await pruneEnterprise(context, { enterpriseId, actor: userId, before, limits });
  if (!pruned.ok) return pruned;
  const { removed, finished, broken } = pruned.value;
  return ok({ ...what, removed, finished, broken: [...broken] });
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'removing audit events needs the role admin: ask an admin or an owner');
}

function tooYoung(): ApiError {
  const message = 'lies less than a day back: events of the last day are kept, so give an earlier time';
  return apiError('invalid_input', `before ${message}`, { fields: [{ field: 'before', message }] });
}

/** How many events were received before a time, of chains that begin with them. */
async function countRemovable(context: ServiceContext, enterpriseId: string, before: string): Promise<number> {
  let count = 0;
  for (const head of await listHeads(context.database, enterpriseId)) {
    const first = await firstReceivedFrom(context.database, head.writer, before);
    const begun = (await findBeginning(context.database, head.writer))?.sequence ?? 0;
    count += Math.max(0, (first ?? head.sequence + 1) - 1 - begun);
  }
  return count;
}

export interface PruneOrder {
  readonly enterpriseId: string;
  /** Who wants it; null for the retention that is set. */
  readonly actor: string | null;
  readonly before: string;
  readonly limits: PruneLimits;
}

export interface Pruned {
  readonly removed: number;
  /** How many of the writes it took. */
  readonly writes: number;
  readonly finished: boolean;
  readonly broken: readonly BrokenChain[];
}

/**
 * Removes events in small writes. Each write also notes the chains' sealed new beginnings, and is itself an event of the
 * control plane's chain: killed anywhere, what is removed was noted. What is removed is checked before, for nothing could
 * show afterwards that it had been altered: a chain that does not verify there is left as it is.
 */
export async function pruneEnterprise(context: ServiceContext, order: PruneOrder): Promise<Result<Pruned, ApiError>> {
  const broken: BrokenChain[] = [];
  let removed = 0;
  let after = '';
  let writes = 0;
  while (writes < order.limits.writes && !context.stopping.aborted) {
    const cut = await nextCut(context, order, after);
    if (cut === null) return ok({ removed, writes, finished: true, broken });
    const done = cut.taken.length === 0 ? ok(true) : await write(context, order, cut);
    if (!done.ok) return done;
    writes += 1;
    // Another worker was there first: the same chains are looked at again.
    if (!done.value) continue;
    broken.push(...cut.broken);
    removed += eventsOf(cut);
    after = cut.after;
  }
  const rest = await dueChains(context.database, order.enterpriseId, order.before, { after, limit: 1 });
  return ok({ removed, writes, finished: rest.length === 0, broken });
}

/** What one write removes of one chain. */
interface Taken {
  readonly from: AuditBeginningRow | null;
  readonly to: AuditBeginningRow;
  readonly events: number;
}

interface Cut {
  readonly taken: readonly Taken[];
  readonly broken: readonly BrokenChain[];
  /** The last writer of whose chain nothing is left to remove. */
  readonly after: string;
}

function eventsOf({ taken }: Pick<Cut, 'taken'>): number {
  return taken.reduce((sum, { events }) => sum + events, 0);
}

/** As much of the next chains as one write removes; null when there is nothing left. */
async function nextCut(context: ServiceContext, order: PruneOrder, done: string): Promise<Cut | null> {
  const page = { after: done, limit: order.limits.chainsPerWrite };
  const due = await dueChains(context.database, order.enterpriseId, order.before, page);
  if (due.length === 0) return null;
  const taken: Taken[] = [];
  const broken: BrokenChain[] = [];
  let after = done;
  for (const writer of due) {
    const room = order.limits.eventsPerWrite - eventsOf({ taken });
    if (room === 0) break;
    const part = await beginningOf(context, order, writer, room);
    if (!part.ok) broken.push(part.error);
    else if (part.value !== null) taken.push(part.value);
    if (!part.ok || part.value === null || part.value.events < room) after = writer;
  }
  return { taken, broken, after };
}

/** The first events of a chain that were received before the time, checked; null when there is none any more. */
async function beginningOf(
  context: ServiceContext,
  { enterpriseId, before }: PruneOrder,
  writer: string,
  limit: number,
): Promise<Result<Taken | null, BrokenChain>> {
  const begun = await readBeginning(context, writer);
  const head = await findHead(context.database, writer);
  if (!begun.ok) return err({ writer, sequence: begun.error, event_id: null, reason: 'wrong_beginning' });
  // Whose chain it is stands under the seal: nobody has another enterprise's events removed.
  if (head !== null && !(await isSealedHead(context.vault, head))) {
    return err({ writer, sequence: head.sequence, event_id: null, reason: 'wrong_head' });
  }
  const { start, row: from } = begun.value;
  const most = Math.min(limit, (head?.sequence ?? 0) - start.sequence);
  if (most <= 0) return ok(null);
  const rows = await listChain(context.database, writer, { after: start.sequence, limit: most });
  const kept = rows.findIndex(({ receivedAt }) => receivedAt >= before);
  const end = await walkOver(start, kept === -1 ? rows : rows.slice(0, kept));
  if (!end.ok) return end;
  const to = { writer, enterpriseId, ...end.value };
  const events = end.value.sequence - start.sequence;
  if (events === 0) return ok(null);
  return ok({ from, to: { ...to, seal: await sealBeginning(context.vault, to) }, events });
}

async function walkOver(start: ChainHead, rows: readonly AuditEventRow[]): Promise<Result<ChainHead, BrokenChain>> {
  let end = start;
  for (const row of rows) {
    const reason: ChainBreak | null = await chainBreak(end, toStoredEvent(row));
    if (reason !== null) return err({ writer: row.writer, sequence: row.sequence, event_id: row.id, reason });
    end = { sequence: row.sequence, hash: row.hash };
  }
  return ok(end);
}

/** False when another worker removed some of it meanwhile: nothing is written then. */
function write(context: ServiceContext, order: PruneOrder, { taken }: Cut): Promise<Result<boolean, ApiError>> {
  const data = { 'svc.audit.before': order.before, 'svc.audit.removed': eventsOf({ taken }) };
  const event = { type: 'control.audit.pruned' as const, actor: order.actor, data };
  return commit(context, controlChain(order), async () => {
    for (const { from, to } of taken) {
      const now = await findBeginning(context.database, to.writer);
      if (now?.hash !== from?.hash) return ok({ statements: [], events: [], value: false });
    }
    const statements = taken.flatMap(({ from, to }) => cutChain(context.database, to, from));
    return ok({ statements, events: [event], value: true });
  });
}
