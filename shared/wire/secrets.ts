import { z } from 'zod';
import { MAX_CHECKED_VALUES, MAX_SECRET_BYTES } from '../model/secret.ts';
import { parseSourcePath } from '../model/source_kind.ts';
import { MAX_VAULT_PATH_LENGTH, parseOwnVaultPath } from '../model/vault_path.ts';
import { id, line, owner, page, pageQuery, time } from './primitives.ts';

/** A vault path without `vault://` at which a person may store a secret. */
export const vaultPath = z.string().superRefine((path, context) => {
  const parsed = parseOwnVaultPath(path);
  if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.error.message });
});

/** A vault path without `vault://` whose value may be minted. */
export const sourcePath = z.string().superRefine((path, context) => {
  const parsed = parseSourcePath(path);
  if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.error.message });
});

/** A value that can be stored in the vault. */
export const secretValue = z.string().superRefine((value, context) => {
  const problem = secretValueProblem(value);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

function secretValueProblem(value: string): string | null {
  if (value === '') return 'is empty: give the secret itself';
  if (new TextEncoder().encode(value).length > MAX_SECRET_BYTES) {
    return `is larger than ${MAX_SECRET_BYTES} bytes: a credential is a header value, not a file`;
  }
  if (value.includes('\0')) return 'contains a NUL character: give text';
  return /\p{Cs}/u.test(value) ? 'is not well-formed Unicode: give text' : null;
}

/** `POST /v1/secrets`: creates the secret (201) or replaces its value (200). */
export const secretInput = z
  .strictObject({
    path: vaultPath,
    value: secretValue,
    description: line(500).optional(),
    /** When this value ends, if that is known, such as of a certificate. It is shown, and enforces nothing. */
    expires_at: time.optional(),
    owner: owner.default('personal'),
  })
  .meta({ id: 'SecretInput' });

/** What the API shows of every secret. */
export const secretFacts = {
  id: id('sec'),
  path: z.string(),
  /** The reference for a binding: `vault://<path>`. */
  ref: z.string(),
  owner,
  description: z.string().nullable(),
  /** Grows with each stored value. */
  version: z.number().int(),
};

/** A stored secret as shown by the API: never its value. */
export const secretRecord = z
  .object({
    ...secretFacts,
    /** Of this version; absent if whoever stored it did not say. */
    expires_at: time.optional(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Secret' });
export type SecretRecord = z.infer<typeof secretRecord>;

/** `POST /v1/secrets/check`: values that must not equal a secret of the caller, such as those of an environment. */
export const secretCheckInput = z
  .strictObject({ values: z.array(z.string()).max(MAX_CHECKED_VALUES) })
  .meta({ id: 'SecretCheck' });

/** The values that equal a stored secret, in the order of the values; once for each secret that matches. */
export const secretCheckReply = z
  .object({ matches: z.array(z.object({ index: z.number().int().min(0), path: z.string(), owner })) })
  .meta({ id: 'SecretMatches' });
export type SecretCheckReply = z.infer<typeof secretCheckReply>;

/** `GET /v1/secrets`: in the order of owner and path. */
export const secretsQuery = z.strictObject({ ...pageQuery, owner: owner.optional() });
export const secretsPage = page(secretRecord).meta({ id: 'SecretsPage' });

/** `DELETE /v1/secrets/{path}?owner=`: the path with its slashes, or the secret's id. */
export const secretParams = z.strictObject({ path: z.string().min(1).max(MAX_VAULT_PATH_LENGTH) });
export const ownerQuery = z.strictObject({ owner: owner.default('personal') });
