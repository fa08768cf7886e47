import { sourceKind } from '../source_descriptor.ts';
import { authenticationProblem, innerPath, VAULT_ACCESS, VAULT_FIELD, VAULT_KEYS, VAULT_URL } from '../vault_fields.ts';

/** A field of a secret that an engine of Vault or OpenBao makes at each read, and takes back at the end of its lease. */
export const VAULT_LEASE = sourceKind('vault_lease', {
  title: 'Vault or OpenBao, leased',
  lead: 'A field of a secret that an engine makes when it is needed, until its lease ends.',
  runs: 'control_plane',
  value: 'token',
  lifeSeconds: null,
  revokes: 'always',
  ...VAULT_KEYS,
  fields: {
    vault_url: VAULT_URL,
    lease_path: {
      schema: innerPath,
      label: 'Path of the lease',
      hint: 'With the engine',
      placeholder: 'nomad/creds/ci',
    },
    field: VAULT_FIELD,
    ...VAULT_ACCESS,
  },
  checks: [authenticationProblem],
  narrowedBy: {},
});
