import type { ApiError } from '../../../shared/wire/errors.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { ok, type Result } from '../../../shared/model/result.ts';
import { findAccount } from '../../store/accounts.ts';
import { findLatestAbout } from '../../store/audit/audit_events.ts';
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
  });
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
