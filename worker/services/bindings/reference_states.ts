import type { Owner } from '../../../shared/model/host_binding.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { parseBindingReference } from '../../../shared/model/vault_path.ts';
import { findStored } from '../../store/secrets.ts';
import { type Caller, ownerId, visibleOwners } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** A reference in a binding of this owner. It resolves among that owner's secrets only. */
export interface OwnedReference {
  readonly owner: Owner;
  readonly reference: string;
}

/** Whether a binding's secret is there: `other_owner` if only the other owner has one at that path. */
export type ReferenceState = 'stored' | 'missing' | 'other_owner';

export interface FoundReference extends OwnedReference {
  readonly state: ReferenceState;
}

type Binding = Pick<HostBindingRecord, 'owner' | 'credential_ref' | 'session_token_ref'>;

/** The references of bindings, each with its state. */
export async function describeBindingReferences(
  context: ServiceContext,
  caller: Caller,
  bindings: readonly Binding[],
): Promise<(binding: Binding) => readonly FoundReference[]> {
  const stateOf = await describeReferences(context, caller, bindings.flatMap(referencesOf));
  return (binding) =>
    referencesOf(binding).flatMap((reference) => {
      const state = stateOf(reference);
      return state === null ? [] : [{ ...reference, state }];
    });
}

function referencesOf({ owner, credential_ref: credential, session_token_ref: token }: Binding): OwnedReference[] {
  return [credential, ...(token === undefined ? [] : [token])].map((reference) => ({ owner, reference }));
}

/** The state of each reference that is well-formed; null of others. */
export async function describeReferences(
  context: ServiceContext,
  caller: Caller,
  references: readonly OwnedReference[],
): Promise<(reference: OwnedReference) => ReferenceState | null> {
  const paths = references.flatMap(({ reference }) => pathOf(reference) ?? []);
  const stored = paths.length === 0 ? [] : await findStored(context.database, visibleOwners(caller), paths);
  const places = new Set(stored.map(({ ownerId: id, path }) => `${id} ${path}`));
  const isAt = (owner: Owner, path: string) => places.has(`${ownerId(caller, owner)} ${path}`);
  return ({ owner, reference }) => {
    const path = pathOf(reference);
    if (path === null) return null;
    if (isAt(owner, path)) return 'stored';
    return isAt(owner === 'personal' ? 'enterprise' : 'personal', path) ? 'other_owner' : 'missing';
  };
}

function pathOf(reference: string): string | null {
  const path = parseBindingReference(reference);
  return path.ok ? path.value : null;
}
