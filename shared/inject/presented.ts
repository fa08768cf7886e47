import type { HostBinding } from '../model/host_binding.ts';
import { adapterOf } from './schemes.ts';
import type { OutgoingRequest } from './outgoing_request.ts';
import type { Presented } from './scheme_adapter.ts';

/**
 * What the client itself put where `binding`'s credential goes. Looks only in that place: a sentinel or a credential
 * anywhere else in the request is not seen, and stays as it is.
 */
export function findPresentedCredential(binding: HostBinding, request: OutgoingRequest): Presented {
  const sentinel = binding.emit.mechanism === 'sentinel-swap' ? binding.emit.sentinel : null;
  return adapterOf(binding.injection).findPresented(binding.injection, request, sentinel);
}
