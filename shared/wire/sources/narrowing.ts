import { z } from 'zod';
import type { Problem } from '../../model/problem.ts';
import { err, ok, type Result } from '../../model/result.ts';
import { formatVaultReference, parseVaultReference, VAULT_SCHEME } from '../../model/vault_path.ts';
import { formOf, readField } from './field_form.ts';

const text = z.string().min(1).max(500);

/**
 * What one session may do less with a minted secret than its source allows. Each field is one of the source, with a smaller value. Which
 * ones a source has is in its kind (`narrowedBy`).
 */
export const narrowing = z
  .strictObject({
    /** Of OAuth: some of those of the source. */
    scopes: z.array(text).min(1).max(100).optional(),
    /** Of GitHub: some of those of the source. */
    repositories: z.array(text).min(1).max(500).optional(),
    /** Of GitHub: some of those of the source, at its level or a lower one. */
    permissions: z
      .record(z.string().min(1).max(60), z.enum(['read', 'write', 'admin']))
      .refine((pairs) => Object.keys(pairs).length > 0, 'is empty: name a permission, such as contents=read')
      .optional(),
    /** Of AWS: a session policy, for a source that has none. */
    policy: z.string().min(2).max(2048).optional(),
    /** Of AWS, at least 900; and of a Google account that impersonates another one. */
    duration_seconds: z.number().int().min(60).max(43_200).optional(),
  })
  .refine((fields) => Object.values(fields).some((value) => value !== undefined), 'names no field')
  .meta({ id: 'Narrowing' });
export type Narrowing = z.output<typeof narrowing>;

/** A vault path, and what a session may do less with its secret. */
export interface SecretScope {
  readonly path: string;
  readonly narrowing: Narrowing;
}

/** Whether a reference is one of a secret that is narrowed. */
export function isScoped(scopes: readonly SecretScope[], reference: string): boolean {
  return scopes.some(({ path }) => formatVaultReference(path) === reference);
}

const RULE = 'write REFERENCE:FIELD=VALUE, such as vault://ci/github:repositories=website';

/** Reads the texts `[vault://]PATH:FIELD=VALUE`; several of one path are put together. */
export function parseScopes(texts: readonly string[]): Result<readonly SecretScope[], Problem> {
  const fields = new Map<string, Record<string, unknown>>();
  for (const each of texts) {
    const [, reference = '', name = '', value = ''] = /^((?:vault:\/\/)?[^:]*):([^=:]*)=(.*)$/s.exec(each) ?? [];
    const isWhole = reference.startsWith(VAULT_SCHEME);
    const path = parseVaultReference(isWhole ? reference : formatVaultReference(reference));
    if (!path.ok) return invalid(`has a value that is no scope: ${RULE}`);
    const field = Object.entries(narrowing.shape).find(([known]) => known === name);
    if (field === undefined) {
      return invalid(`has the field ${JSON.stringify(name)}: use ${Object.keys(narrowing.shape).join(', ')}`);
    }
    const known = fields.get(path.value) ?? {};
    if (Object.hasOwn(known, name)) return invalid(`names ${name} twice: give all of its values at once`);
    fields.set(path.value, { ...known, [name]: readField(formOf(field[1]), value) });
  }
  const scopes: SecretScope[] = [];
  for (const [path, given] of fields) {
    const checked = narrowing.safeParse(given);
    const issue = checked.error?.issues[0];
    if (!checked.success) return invalid(`${issue?.path.join('.') ?? ''} ${issue?.message ?? 'is not valid'}`);
    scopes.push({ path, narrowing: checked.data });
  }
  return ok(scopes);
}

function invalid(message: string): Result<never, Problem> {
  return err({ reason: 'invalid_scope', message });
}
