import type { HostBinding } from '../../shared/model/host_binding.ts';

/** A valid binding; a test changes one field. */
export function sampleBinding(changes: Partial<HostBinding> = {}): HostBinding {
  return {
    id: 'bnd_00000000000000000000000001',
    owner: 'personal',
    host: 'api.example.test',
    credential: { owner: 'personal', path: 'user/demo' },
    injection: { scheme: 'bearer' },
    emit: { mechanism: 'inject' },
    allowedHosts: [],
    body: 'buffer',
    ...changes,
  };
}
