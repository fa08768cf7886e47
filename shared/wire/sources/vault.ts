import { z } from 'zod';
import { providerUrl } from '../connectors/connector_credentials.ts';
import { line } from '../primitives.ts';

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

/** Without `/v1`; with a path, if a proxy serves it below one. */
const vaultUrl = providerUrl.refine(
  (url) => !/[?#]|\/v1\/?$/.test(url),
  'has more than the address: leave out /v1 and a query, such as https://vault.example.com',
);
const word = line(255).min(1);

/** How a source authenticates. */
const access = {
  authentication: z.enum(['token', 'approle', 'jwt']).default('token'),
  /** Of an AppRole, whose secret id is the key of the source. */
  role_id: z
    .string()
    .regex(/^[\x21-\x7e]{1,500}$/, 'has a space or a character that is not ASCII: give it as Vault shows it')
    .optional(),
  /** Of a login by a JWT, which the key of the source signs. Absent: the default role of the auth method. */
  role: word.optional(),
  issuer: word.optional(),
  subject: word.optional(),
  audience: word.optional(),
  /** Default: RS256. */
  algorithm: z.enum(['RS256', 'PS256', 'ES256', 'EdDSA']).optional(),
  key_id: word.optional(),
  /** Where a login is made. Default: `approle` or `jwt`. */
  auth_mount: innerPath.optional(),
  namespace: innerPath.optional(),
};

/** A field of a secret in a KV engine of HashiCorp Vault or OpenBao. */
export const vaultKv = z.strictObject({
  kind: z.literal('vault_kv'),
  vault_url: vaultUrl,
  /** Where the engine is mounted. */
  mount: innerPath.default('secret'),
  secret_path: innerPath,
  field: word,
  /** Of the engine. Default: 2. */
  kv_version: z.number().int().min(1).max(2).optional(),
  /** Absent: the newest. Engines of version 1 keep no others. */
  version: z.number().int().min(1).max(2_147_483_647).optional(),
  ...access,
});

/** A field of a secret that an engine of Vault or OpenBao makes at each read, and takes back at the end of its lease. */
export const vaultLease = z.strictObject({
  kind: z.literal('vault_lease'),
  vault_url: vaultUrl,
  /** With the engine, such as `nomad/creds/ci`. */
  lease_path: innerPath,
  field: word,
  ...access,
});

type Access = Pick<z.output<typeof vaultKv>, keyof typeof access>;
type AccessField = Exclude<keyof Access, 'authentication' | 'algorithm' | 'namespace'>;

const NEEDED: Readonly<Record<Access['authentication'], readonly AccessField[]>> = {
  token: [],
  approle: ['role_id'],
  jwt: ['issuer', 'subject'],
};
const USED: typeof NEEDED = {
  token: [],
  approle: ['role_id', 'auth_mount'],
  jwt: ['role', 'issuer', 'subject', 'audience', 'key_id', 'auth_mount'],
};
const WHY_NEEDED: Partial<Record<AccessField, string>> = {
  role_id: 'is needed for approle: "vault read auth/approle/role/NAME/role-id" shows it',
  issuer: 'is needed for jwt: who signs, as bound_issuer of the auth method names it',
  subject: 'is needed for jwt: whom the role of Vault lets log in, as its bound_subject names it',
};

/** Which field of a source contradicts its authentication; null if none does. */
export function authenticationProblem(
  source: Access,
): { readonly field: AccessField; readonly message: string } | null {
  const { authentication } = source;
  const missing = NEEDED[authentication].find((name) => source[name] === undefined);
  if (missing !== undefined) return { field: missing, message: WHY_NEEDED[missing] ?? 'is needed' };
  const field = [...USED.approle, ...USED.jwt].find(
    (name) => source[name] !== undefined && !USED[authentication].includes(name),
  );
  return field === undefined
    ? null
    : { field, message: ONLY_FOR[field] ?? 'is only for a JWT: set authentication=jwt' };
}

const ONLY_FOR: Partial<Record<AccessField, string>> = {
  role_id: 'is only for an AppRole: set authentication=approle',
  auth_mount: 'is only for a login: set authentication=approle, or jwt',
};
