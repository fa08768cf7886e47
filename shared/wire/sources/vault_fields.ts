import { z } from 'zod';
import type { FieldProblem } from '../../model/problem.ts';
import { serverUrl } from '../connectors/connector_credentials.ts';
import { line } from '../primitives.ts';
import { ALGORITHM, AUDIENCE, ISSUER, KEY_ID, SUBJECT, VALUE_FIELD } from './fields.ts';

/** A path inside of Vault, as `vault kv get` takes it. A dot segment would be resolved away, to another path. */
export const innerPath = z
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
const vaultUrl = serverUrl.refine(
  (url) => !/[?#]|\/v1\/?$/.test(url),
  'has more than the address: leave out /v1 and a query, such as https://vault.example.com:8200',
);
const word = line(255).min(1);

export const VAULT_URL = { schema: vaultUrl, label: 'Address of Vault', placeholder: 'https://vault.example.com:8200' };
export const VAULT_FIELD = { ...VALUE_FIELD, schema: word, hint: 'Its name in the secret there' };

/** How a source authenticates. */
export const VAULT_ACCESS = {
  authentication: {
    schema: z.enum(['token', 'approle', 'jwt']).default('token'),
    label: 'How it authenticates',
    hint: 'token: the key is a token; approle: it is the secret id of an AppRole; jwt: it is a private key that signs a JWT for issuer and subject',
  },
  role_id: {
    schema: z
      .string()
      .regex(/^[\x21-\x7e]{1,500}$/, 'has a space or a character that is not ASCII: give it as Vault shows it')
      .optional(),
    label: 'Role id of the AppRole',
  },
  /** Of a login by a JWT, which the key of the source signs. */
  role: { schema: word.optional(), label: 'Role of the login by JWT', hint: 'Empty: the default role', isRare: true },
  issuer: { ...ISSUER, schema: word.optional() },
  subject: { ...SUBJECT, schema: word.optional() },
  audience: { ...AUDIENCE, schema: word.optional() },
  /** Default: RS256. */
  algorithm: { ...ALGORITHM, schema: z.enum(['RS256', 'PS256', 'ES256', 'EdDSA']).optional() },
  key_id: { ...KEY_ID, schema: word.optional() },
  auth_mount: {
    schema: innerPath.optional(),
    label: 'Mount of the login',
    hint: 'Empty: approle or jwt',
    isRare: true,
  },
  namespace: { schema: innerPath.optional(), label: 'Namespace of Vault', isRare: true },
} as const;

type Access = { readonly [N in keyof typeof VAULT_ACCESS]?: z.output<(typeof VAULT_ACCESS)[N]['schema']> } & {
  readonly authentication: 'token' | 'approle' | 'jwt';
};

const KEYS = { token: 'token', approle: 'secret id', jwt: 'private key' } as const;
export const VAULT_KEYS = {
  keys: Object.values(KEYS),
  keyHint: 'The token, the secret id of the AppRole, or the private key that signs the JWT, in PEM.',
  keyOf: ({ authentication }: Pick<Access, 'authentication'>) => KEYS[authentication],
};

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
export function authenticationProblem(source: Access): FieldProblem | null {
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
