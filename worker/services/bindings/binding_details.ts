import type { ApiError } from '../../../shared/wire/errors.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { ok, type Result } from '../../../shared/model/result.ts';
import { findAccount } from '../../store/accounts.ts';
import { needsAcceptance } from '../../../shared/sharing/share_rules.ts';
import { findLatestAbout } from '../../store/audit/audit_events.ts';
import { countSharesOf } from '../../store/people/shares.ts';
import { type Caller, writableOwner } from '../../kernel/caller.ts';
import { getHostBinding } from './host_bindings.ts';
import { describeBindingReferences, type FoundReference } from './reference_states.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** Who made or last changed something, according to the audit log. */
interface LastChange {
  readonly eventId: string;
  readonly time: string;
  /** The name of a user of the enterprise; null for anybody else. */
  readonly by: { readonly id: string; readonly name: string | null } | null;
}

/** A binding with related data. */
export interface BindingDetails {
  readonly binding: HostBindingRecord;
  readonly mayChange: boolean;
  readonly references: readonly FoundReference[];
  /** Null if the log does not reach back that far. */
  readonly lastChange: LastChange | null;
  /** What a change of it does to those whom its owner shares it with; null if it is shared with nobody. */
  readonly sharing: Sharing | null;
}

interface Sharing {
  readonly count: number;
  /** Each of them accepts a change before the binding is used again. */
  readonly needsAcceptance: boolean;
}

/** Refuses with `not_found`. */
export async function describeBinding(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<BindingDetails, ApiError>> {
  const binding = await getHostBinding(context, caller, id);
  if (!binding.ok) return binding;
  const referencesOf = await describeBindingReferences(context, caller, [binding.value]);
  const mayChange = writableOwner(caller, binding.value.owner).ok;
  const lastChange = await findLastChange(context, caller, id);
  return ok({
    binding: binding.value,
    mayChange,
    references: referencesOf(binding.value),
    lastChange,
    sharing: await describeSharing(context, caller, binding.value),
  });
}

async function describeSharing(
  context: ServiceContext,
  caller: Caller,
  { id, owner }: HostBindingRecord,
): Promise<Sharing | null> {
  if (owner !== 'personal') return null;
  const count = await countSharesOf(context.database, { id, ownerId: caller.userId });
  return count === 0 ? null : { count, needsAcceptance: needsAcceptance(caller) };
}

async function findLastChange(context: ServiceContext, caller: Caller, id: string): Promise<LastChange | null> {
  const types = ['control.binding.created', 'control.binding.updated'] as const;
  const event = await findLatestAbout(context.database, caller.enterpriseId, { types, resource: id });
  if (event === null) return null;
  return {
    eventId: event.id,
    time: event.time,
    by: event.actor === null ? null : await nameOf(context, caller, event.actor),
  };
}

async function nameOf(context: ServiceContext, { enterpriseId }: Caller, id: string) {
  const account = await findAccount(context.database, id);
  return { id, name: account !== null && account.user.enterpriseId === enterpriseId ? account.user.displayName : null };
}
