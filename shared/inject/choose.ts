import type { HostBinding } from '../model/host_binding.ts';
import type { OutgoingRequest } from './outgoing_request.ts';
import { findPresentedCredential } from './find_presented.ts';
import type { Presented } from './scheme_adapter.ts';

interface ChosenBinding {
  readonly binding: HostBinding;
  readonly presented: Presented;
}

/**
 * Chooses which of a host's bindings a request uses: the one whose sentinel it presents; else the default of the session's
 * choice; else the one without a sentinel; else the only one. A client that presents no sentinel, sends nothing in the place of the binding without one, and brings
 * its own credential in the place of another binding acts as itself: then that other binding is chosen, so that no second
 * identity is added. `null` if several accounts are possible and the request names none.
 */
export function chooseBinding(
  bindings: readonly HostBinding[],
  request: OutgoingRequest,
  byDefault: HostBinding | 'none' | 'as_ever' = 'as_ever',
): ChosenBinding | null {
  const preferred = byDefault === 'as_ever' ? bindings.find(({ emit }) => emit.mechanism === 'inject') : byDefault;
  let withoutSentinel: ChosenBinding | null = null;
  let foreign: ChosenBinding | null = null;
  let last: ChosenBinding | null = null;
  for (const binding of bindings) {
    last = { binding, presented: findPresentedCredential(binding, request) };
    if (last.presented === 'sentinel') return last;
    if (binding === preferred) withoutSentinel = last;
    else if (last.presented !== 'absent') foreign ??= last;
  }
  if (withoutSentinel !== null && withoutSentinel.presented !== 'absent') return withoutSentinel;
  return foreign ?? withoutSentinel ?? (bindings.length === 1 ? last : null);
}
