import type { HostBinding } from '../model/host_binding.ts';
import type { Presented } from './scheme_adapter.ts';

export type EmitDecision = 'write' | 'keep_foreign';

/**
 * Whether the credential is written. `inject`: always, replacing what the client sent. `sentinel-swap`: unless the client
 * sent its own credential. A URL presigned with a foreign key is kept under both (design section 5).
 */
export function emitDecision(binding: HostBinding, presented: Presented): EmitDecision {
  if (presented === 'foreign_presigned') return 'keep_foreign';
  return binding.emit.mechanism === 'sentinel-swap' && presented === 'foreign' ? 'keep_foreign' : 'write';
}
