import type { HostBinding } from '../model/host_binding.ts';
import { adapterOf } from './schemes.ts';
import type { OutgoingRequest } from './outgoing_request.ts';
import type { Presented } from './scheme_adapter.ts';

/**
 * What the client itself put in the place of `binding`'s credential. Looks only there: a sentinel or credential anywhere
 * else is ignored and stays unchanged.
 */
export function findPresentedCredential(
  binding: Pick<HostBinding, 'injection' | 'emit'>,
  request: OutgoingRequest,
): Presented {
  const sentinel = binding.emit.mechanism === 'sentinel-swap' ? binding.emit.sentinel : null;
  return adapterOf(binding.injection).findPresented(binding.injection, request, sentinel);
}
