import { z } from 'zod';
import { providerUrl, serverUrl } from '../connectors/connector_credentials.ts';
import { line } from '../primitives.ts';
import type { Narrowing } from './narrowing.ts';

/** The fields that several kinds of sources have. */

export const word = z
  .string()
  .min(1)
  .max(500)
  .regex(/^[\x21-\x7e]+$/, 'has a space or a character that is not ASCII: give it as the provider shows it');
export const LIST = 'Separated by commas';

export const TOKEN_URL = {
  schema: providerUrl,
  label: 'Token URL',
  placeholder: 'https://id.example.com/oauth2/token',
};
export const CLIENT_ID = { schema: word, label: 'Client id' };
export const SCOPES = {
  schema: z
    .array(word.regex(/^[^"\\]+$/, 'has a character that no scope may have'))
    .max(100)
    .default([]),
  label: 'Scopes',
  hint: LIST,
};
export const AUDIENCE = { schema: word.optional(), label: 'Audience' };
export const ISSUER = { schema: word, label: 'Issuer', hint: 'Who signs the JWT' };
export const SUBJECT = { schema: word, label: 'Subject', hint: 'Whom the token is for' };
export const ALGORITHM = {
  schema: z.enum(['RS256', 'PS256', 'ES256', 'EdDSA']).default('RS256'),
  label: 'How the assertion is signed',
  isRare: true,
} as const;
export const KEY_ID = {
  schema: word.optional(),
  label: 'Key id',
  hint: 'The kid of the public key at the provider',
  isRare: true,
} as const;
export const DURATION_SECONDS = {
  label: 'Life in seconds',
  hint: 'AWS: 900 to 43200; an impersonated Google account: 60 to 43200',
};

/** A secret in a secret manager has this field if its value is a JSON object. Absent: the whole value. */
export const VALUE_FIELD = {
  schema: line(255).min(1).optional(),
  label: 'Field',
  hint: 'If the secret there is a JSON object; empty: the whole value',
};
/** Absent: the newest. */
export const VERSION = {
  schema: z.number().int().min(1).max(2_147_483_647).optional(),
  label: 'Version there',
  hint: 'Empty: the newest',
  isRare: true,
} as const;
/** A name that is one segment of a path at most; a dot segment would be resolved to another path. */
export const segmentName = z
  .string()
  .regex(/^\.{0,2}[\w-][\w.-]{0,252}$/, 'is not a name: use letters, digits, _, - and ., as the service shows it');
export const SECRET_NAME = {
  schema: segmentName,
  label: 'Name of the secret there',
  placeholder: 'DATABASE_PASSWORD',
};

/** The address of a secret manager, at any port. It may have a path, if a proxy serves it below one. */
export const origin = (example: string) =>
  serverUrl.refine((url) => !/[?#]/.test(url), `has more than the address: leave out a query, such as ${example}`);

/** Without scopes of its own, a source gets what its provider chooses, and one that is named may be more than that. */
export function fewerScopes(
  { scopes: own }: { readonly scopes: readonly string[] },
  { scopes = [] }: Narrowing,
): string | null {
  if (own.length === 0) return 'the source names none, so nothing says which would be less';
  const more = scopes.find((scope) => !own.includes(scope));
  return more === undefined ? null : `${JSON.stringify(more)} is not one of ${own.join(' ')}`;
}

export function fewerSeconds(own: number, { duration_seconds: seconds = 0 }: Narrowing): string | null {
  return seconds > own ? `is more than the ${own} of the source` : null;
}
