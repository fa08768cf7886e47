import { connectorOfVaultPath } from '../model/connector.ts';
import type { HostBinding } from '../model/host_binding.ts';
import type { Presented } from './scheme_adapter.ts';

/** `forward`: the request has no credential and gets none. */
type EmitDecision = 'write' | 'keep_foreign' | 'forward';

/**
 * Whether the credential is written. `inject`: always, replacing what the client sent. `sentinel-swap`: unless the client
 * sent its own credential. A URL presigned with a foreign key is kept under both (design section 5).
 * The access token of a program's login is written only in place of its placeholder: other programs do not act as its account.
 */
export function emitDecision(binding: HostBinding, presented: Presented): EmitDecision {
  if (presented === 'foreign_presigned') return 'keep_foreign';
  if (presented === 'absent' && connectorOfVaultPath(binding.credential.path) !== null) return 'forward';
  return binding.emit.mechanism === 'sentinel-swap' && presented === 'foreign' ? 'keep_foreign' : 'write';
}
