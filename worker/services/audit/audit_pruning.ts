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
  findFirstReceived,
} from '../../store/audit/audit_beginnings.ts';
import { type AuditEventRow, findHead, listChain, listHeads } from '../../store/audit/audit_events.ts';
import { readBeginning } from './audit_beginning.ts';
import { toStoredEvent } from './audit_log.ts';
import { isSealedHead, sealBeginning } from '../../kernel/audit_seals.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { sha256Hex } from '../../kernel/sha256.ts';

/**
 * Younger events are never removed: nobody can remove the events of what they just did, or of a sidecar that is still
 * sending.
 */
const YOUNGEST_REMOVED_MS = 24 * 3_600_000;

/** How much is done before other work gets a turn. */
export interface PruneLimits {
  /** How many events are read, checked and removed in one write. */
  readonly eventsPerWrite: number;
  /** The largest number of chains in one write. */
  readonly chainsPerWrite: number;
  /** How many writes one call makes; the caller calls again for the rest. */
  readonly writes: number;
}

/** A write of this many events takes a small part of a second. */
export const PRUNE_LIMITS: PruneLimits = { eventsPerWrite: 500, chainsPerWrite: 20, writes: 10 };

/**
 * Removes the events of the enterprise's chains that were received before a time. Refuses with `admin_required`,
 * `invalid_input`.
 */
export async function pruneAudit(
  context: ServiceContext,
  caller: Caller,
  input: AuditPruneInput,
  limits: PruneLimits = PRUNE_LIMITS,
): Promise<Result<AuditPruneReply, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const { enterpriseId } = caller;
  const before = new Date(input.before).toISOString();
  if (Date.parse(before) > context.clock.now() - YOUNGEST_REMOVED_MS) return err(tooYoung());
  const what = { before, dry_run: input.dry_run };
  if (input.dry_run) {
    return ok({ ...what, removed: await countRemovable(context, enterpriseId, before), finished: true, broken: [] });
  }
  const pruned = await pruneEnterprise(context, { enterpriseId, by: caller, before, limits });
  if (!pruned.ok) return pruned;
  const { removed, finished, broken } = pruned.value;
  return ok({ ...what, removed, finished, broken: [...broken] });
}

/** The same, while few others do. Refuses with `too_many_open_calls`, too. */
export function pruneInTurn(
  context: ServiceContext,
  caller: Caller,
  input: AuditPruneInput,
): Promise<Result<AuditPruneReply, ApiError>> {
  const prune = () => pruneAudit(context, caller, input);
  return context.openCalls.holdWhile('audit pruning', caller.enterpriseId, prune);
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'removing audit events needs the role admin: ask an admin or an owner');
}

function tooYoung(): ApiError {
  const message = 'must be at least a day ago: events of the last day are kept, so give an earlier time';
  return apiError('invalid_input', `before ${message}`, { fields: [{ field: 'before', message }] });
}

/** How many events at the beginning of chains were received before a time. */
async function countRemovable(context: ServiceContext, enterpriseId: string, before: string): Promise<number> {
  let count = 0;
  for (const head of await listHeads(context.database, enterpriseId)) {
    const first = await findFirstReceived(context.database, head.writer, before);
    const begun = (await findBeginning(context.database, head.writer))?.sequence ?? 0;
    count += Math.max(0, (first ?? head.sequence + 1) - 1 - begun);
  }
  return count;
}

interface PruneOrder {
  readonly enterpriseId: string;
  /** Who removes them; null for the configured retention. */
  readonly by: Caller | null;
  readonly before: string;
  readonly limits: PruneLimits;
}

interface Pruned {
  readonly removed: number;
  /** How many of the planned writes were made. */
  readonly writes: number;
  readonly finished: boolean;
  readonly broken: readonly BrokenChain[];
}

/**
 * Removes events in small writes. Each write also records the chains' new sealed beginnings and appends an event to the
 * control plane's chain, so a killed run leaves nothing unrecorded. Events are verified before they are removed,
 * because an alteration could not be shown afterwards. A chain that does not verify is left as it is.
 */
export async function pruneEnterprise(context: ServiceContext, order: PruneOrder): Promise<Result<Pruned, ApiError>> {
  const broken: BrokenChain[] = [];
  let removed = 0;
  let after = '';
  let writes = 0;
  while (writes < order.limits.writes && !context.stopping.aborted) {
    const cut = await planCut(context, order, after);
    if (cut === null) return ok({ removed, writes, finished: true, broken });
    const done = cut.taken.length === 0 ? ok(true) : await write(context, order, cut);
    if (!done.ok) return done;
    writes += 1;
    // Another worker was first: read the same chains again.
    if (!done.value) continue;
    broken.push(...cut.broken);
    removed += eventsOf(cut);
    after = cut.after;
  }
  const rest = await dueChains(context.database, order.enterpriseId, order.before, { after, limit: 1 });
  return ok({ removed, writes, finished: rest.length === 0, broken });
}

/** What one write removes from one chain. */
interface Taken {
  readonly from: AuditBeginningRow | null;
  readonly to: AuditBeginningRow;
  readonly events: number;
}

interface Cut {
  readonly taken: readonly Taken[];
  readonly broken: readonly BrokenChain[];
  /** The last writer whose chain has nothing left to remove. */
  readonly after: string;
}

function eventsOf({ taken }: Pick<Cut, 'taken'>): number {
  return taken.reduce((sum, { events }) => sum + events, 0);
}

/** What one write removes from the next chains; null if nothing is left. */
async function planCut(context: ServiceContext, order: PruneOrder, done: string): Promise<Cut | null> {
  const page = { after: done, limit: order.limits.chainsPerWrite };
  const due = await dueChains(context.database, order.enterpriseId, order.before, page);
  if (due.length === 0) return null;
  const taken: Taken[] = [];
  const broken: BrokenChain[] = [];
  let after = done;
  for (const writer of due) {
    const room = order.limits.eventsPerWrite - eventsOf({ taken });
    if (room === 0) break;
    const part = await takeBeginning(context, order, writer, room);
    if (!part.ok) broken.push(part.error);
    else if (part.value !== null) taken.push(part.value);
    if (!part.ok || part.value === null || part.value.events < room) after = writer;
  }
  return { taken, broken, after };
}

/** The verified events at the chain's beginning that were received before the time; null if there are none. */
async function takeBeginning(
  context: ServiceContext,
  { enterpriseId, before }: PruneOrder,
  writer: string,
  limit: number,
): Promise<Result<Taken | null, BrokenChain>> {
  const begun = await readBeginning(context, writer);
  const head = await findHead(context.database, writer);
  if (!begun.ok) return err({ writer, sequence: begun.error, event_id: null, reason: 'wrong_beginning' });
  // The chain's enterprise is covered by the seal: nobody can have another enterprise's events removed.
  if (head !== null && !(await isSealedHead(context.vault, head))) {
    return err({ writer, sequence: head.sequence, event_id: null, reason: 'wrong_head' });
  }
  const { start, row: from } = begun.value;
  const most = Math.min(limit, (head?.sequence ?? 0) - start.sequence);
  if (most <= 0) return ok(null);
  const rows = await listChain(context.database, writer, { after: start.sequence, limit: most });
  const kept = rows.findIndex(({ receivedAt }) => receivedAt >= before);
  const end = walkOver(start, kept === -1 ? rows : rows.slice(0, kept));
  if (!end.ok) return end;
  const to = { writer, enterpriseId, ...end.value };
  const events = end.value.sequence - start.sequence;
  if (events === 0) return ok(null);
  return ok({ from, to: { ...to, seal: await sealBeginning(context.vault, to) }, events });
}

function walkOver(start: ChainHead, rows: readonly AuditEventRow[]): Result<ChainHead, BrokenChain> {
  let end = start;
  for (const row of rows) {
    const reason: ChainBreak | null = chainBreak(end, toStoredEvent(row), sha256Hex);
    if (reason !== null) return err({ writer: row.writer, sequence: row.sequence, event_id: row.id, reason });
    end = { sequence: row.sequence, hash: row.hash };
  }
  return ok(end);
}

/** False if another worker removed some of them meanwhile: then nothing is written. */
function write(context: ServiceContext, order: PruneOrder, { taken }: Cut): Promise<Result<boolean, ApiError>> {
  const data = { 'svc.audit.before': order.before, 'svc.audit.removed': eventsOf({ taken }) };
  const event = { type: 'control.audit.pruned' as const, actor: order.by?.userId ?? null, data };
  return commit(context, controlChain(order.by ?? order), async () => {
    for (const { from, to } of taken) {
      const now = await findBeginning(context.database, to.writer);
      if (now?.hash !== from?.hash) return ok({ statements: [], events: [], value: false });
    }
    const statements = taken.flatMap(({ from, to }) => cutChain(context.database, to, from));
    return ok({ statements, events: [event], value: true });
  });
}
