import { z } from 'zod';
import { providerUrl } from '../connectors/connector_credentials.ts';
import { line } from '../primitives.ts';

/** The auth method at which a role logs in, unless the source names another one. */
export const DEFAULT_AUTH_MOUNT = 'approle';

/** A path inside of Vault, as `vault kv get` takes it. A dot segment would be resolved away, to another path. */
const innerPath = z
  .string()
  .min(1)
  .max(500)
  .superRefine((text, context) => {
    const message = innerPathProblem(text);
    if (message !== null) context.addIssue({ code: 'custom', message });
  });

function innerPathProblem(text: string): string | null {
  if (!/^[\x20-\x7e]*$/.test(text) || /[%?#\\]/.test(text)) {
    return 'has a character that no path may have: give printable ASCII without %, ?, # and \\, and do not encode it';
  }
  const segments = text.split('/');
  if (segments.includes('')) return 'has an empty part: give it without a slash at either end, such as ci/database';
  return segments.includes('.') || segments.includes('..') ? 'has a part that is . or ..: give the path itself' : null;
}

/** A field of a secret in a KV engine, version 2, of HashiCorp Vault or OpenBao. */
export const vaultKv = z.strictObject({
  kind: z.literal('vault_kv'),
  /** Without `/v1`; with a path, if a proxy serves it below one. */
  vault_url: providerUrl.refine(
    (url) => !/[?#]|\/v1\/?$/.test(url),
    'has more than the address: leave out /v1 and a query, such as https://vault.example.com',
  ),
  /** Where the engine is mounted. */
  mount: innerPath.default('secret'),
  secret_path: innerPath,
  field: line(255).min(1),
  /** Absent: the newest. */
  version: z.number().int().min(1).max(2_147_483_647).optional(),
  authentication: z.enum(['token', 'approle']).default('token'),
  /** Of an AppRole, whose secret id is the key of the source. */
  role_id: z
    .string()
    .regex(/^[\x21-\x7e]{1,500}$/, 'has a space or a character that is not ASCII: give it as Vault shows it')
    .optional(),
  /** Default: {@link DEFAULT_AUTH_MOUNT}. */
  auth_mount: innerPath.optional(),
  namespace: innerPath.optional(),
});

/** Which field of a source contradicts its authentication; null if none does. */
export function authenticationProblem(
  source: z.output<typeof vaultKv>,
): { readonly field: 'role_id' | 'auth_mount'; readonly message: string } | null {
  if (source.authentication === 'approle') {
    const message = 'is needed for approle: "vault read auth/approle/role/NAME/role-id" shows it';
    return source.role_id === undefined ? { field: 'role_id', message } : null;
  }
  const field = (['role_id', 'auth_mount'] as const).find((name) => source[name] !== undefined);
  return field === undefined ? null : { field, message: 'is only for an AppRole: set authentication=approle' };
}
