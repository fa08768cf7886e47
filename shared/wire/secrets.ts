import { z } from 'zod';
import { id, owner, page, pageQuery, time } from './primitives.ts';

const SEGMENT = /^[a-z0-9][a-z0-9._-]*$/;
const RESERVED = ['mcp-servers', 'connectors'];
export const MAX_VAULT_PATH_CHARACTERS = 256;
/** The largest secret, in bytes of UTF-8: no upstream takes a larger header. */
export const MAX_SECRET_BYTES = 64 * 1024;

/** What is wrong with a vault path a user gives, or null. */
export function vaultPathProblem(path: string): string | null {
  if (path.startsWith('vault://')) return 'starts with vault://: give the path alone, such as user/demo';
  if (path.length > MAX_VAULT_PATH_CHARACTERS) return `is longer than ${MAX_VAULT_PATH_CHARACTERS} characters`;
  const segments = path.split('/');
  const bad = segments.find((segment) => !SEGMENT.test(segment));
  if (bad !== undefined) {
    const shown = JSON.stringify(bad.slice(0, 40));
    return `has the segment ${shown}: segments are lower-case letters, digits, ".", "_" and "-", and begin with a letter or digit`;
  }
  if (segments.length > 1 && RESERVED.includes(segments[0] ?? '')) {
    return `begins with ${segments[0]}/, which the service keeps for itself: choose another first segment`;
  }
  return null;
}

/** A vault path without `vault://`: `segment(/segment)*`. */
export const vaultPath = z.string().superRefine((path, context) => {
  const problem = vaultPathProblem(path);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

const secretValue = z.string().superRefine((value, context) => {
  const problem = secretValueProblem(value);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

function secretValueProblem(value: string): string | null {
  if (value === '') return 'is empty: give the secret itself';
  if (new TextEncoder().encode(value).length > MAX_SECRET_BYTES) {
    return `is larger than ${MAX_SECRET_BYTES} bytes: a credential is a header value, not a file`;
  }
  if (value.includes('\0')) return 'holds a NUL character: give text';
  return /\p{Cs}/u.test(value) ? 'is not well-formed Unicode: give text' : null;
}

/** `POST /v1/secrets`: creates the secret (201) or replaces its value (200). */
export const secretInput = z
  .strictObject({
    path: vaultPath,
    value: secretValue,
    description: z.string().max(500).optional(),
    owner: owner.default('personal'),
  })
  .meta({ id: 'SecretInput' });
export type SecretInput = z.input<typeof secretInput>;

/** A stored secret as the API shows it: never its value. */
export const secretRecord = z
  .object({
    id: id('sec'),
    path: z.string(),
    /** The reference to write into a binding: `vault://<path>`. */
    ref: z.string(),
    owner,
    description: z.string().nullable(),
    /** Grows with each stored value. */
    version: z.number().int(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Secret' });
export type SecretRecord = z.infer<typeof secretRecord>;

/** `GET /v1/secrets`: in the order of owner and path. */
export const secretsQuery = z.strictObject({ ...pageQuery, owner: owner.optional() });
export const secretsPage = page(secretRecord).meta({ id: 'SecretsPage' });

/** `DELETE /v1/secrets/{path}?owner=`: the path as it is, with its slashes, or the secret's id. */
export const secretParams = z.strictObject({ path: z.string().min(1).max(MAX_VAULT_PATH_CHARACTERS) });
export const ownerQuery = z.strictObject({ owner: owner.default('personal') });
