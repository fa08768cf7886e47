import { z } from 'zod';
import { VERSION } from '../fields.ts';
import { KEPT, sourceKind } from '../source_descriptor.ts';
import { authenticationProblem, innerPath, VAULT_ACCESS, VAULT_FIELD, VAULT_KEYS, VAULT_URL } from '../vault_fields.ts';

/** A field of a secret in a KV engine of HashiCorp Vault or OpenBao. */
export const VAULT_KV = sourceKind('vault_kv', {
  title: 'Vault or OpenBao',
  lead: 'A field of a secret in a KV engine of version 2, read there every few minutes.',
  ...KEPT,
  ...VAULT_KEYS,
  fields: {
    vault_url: VAULT_URL,
    mount: {
      schema: innerPath.default('secret'),
      label: 'Engine',
      hint: 'Where the KV engine is mounted; empty: secret',
    },
    secret_path: {
      schema: innerPath,
      label: 'Path of the secret there',
      hint: 'Without the engine and data/',
      placeholder: 'ci/database',
    },
    field: VAULT_FIELD,
    kv_version: {
      schema: z.number().int().min(1).max(2).optional(),
      label: 'Version of the KV engine',
      hint: 'Empty: 2',
      isRare: true,
    },
    /** Engines of version 1 keep no earlier ones. */
    version: VERSION,
    ...VAULT_ACCESS,
  },
  checks: [
    authenticationProblem,
    ({ kv_version: engine, version }) =>
      engine === 1 && version !== undefined
        ? { field: 'version', message: 'is not for an engine of version 1, which keeps no earlier ones: leave it out' }
        : null,
  ],
});
