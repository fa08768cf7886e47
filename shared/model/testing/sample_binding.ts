import type { HostBinding } from '../host_binding.ts';

/** A valid bearer binding; a test changes one field. */
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

/** The same for a host, which its id names. */
export function bearerBinding(host: string, changes: Partial<HostBinding> = {}): HostBinding {
  return sampleBinding({ id: `bnd_${host}`, host, ...changes });
}
