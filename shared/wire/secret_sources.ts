import { z } from 'zod';
import { BORROWED_KIND, findServerCredential } from '../model/source_kind.ts';
import { line, owner, pageQuery, time } from './primitives.ts';
import { secretFacts, secretValue, sourcePath } from './secrets.ts';
import { SOURCE_KINDS, secretSource } from './sources/source_table.ts';

/** The fields of {@link sourceInput}. */
export const sourceInputFields = z.strictObject({
  path: sourcePath,
  owner: owner.default('personal'),
  description: line(500).optional(),
  source: secretSource,
  /** The client secret, the private key in PEM (PKCS#8; for RSA also PKCS#1), the secret access key of an AWS caller, a token to exchange, or what reads a secret manager. A borrowed secret has none. */
  key: secretValue.optional(),
});

/**
 * `POST /v1/secret-sources`: the secret at the path is minted from now on. The key is always given: a source whose URL
 * could be changed without it would send the stored key to whoever changes it.
 */
export const sourceInput = sourceInputFields
  .superRefine(({ path, source, key }, context) => {
    const isBorrowed = source.kind === BORROWED_KIND;
    if (isBorrowed && findServerCredential(path) !== null) {
      context.addIssue({
        code: 'custom',
        path: ['path'],
        message: 'is of an MCP server, which cannot use a borrowed secret',
      });
    }
    if (isBorrowed === (key === undefined)) return;
    const message = isBorrowed
      ? 'is not for a borrowed secret: its program gives the value on each machine'
      : 'is missing: give the client secret, the private key or the token of the source';
    context.addIssue({ code: 'custom', path: ['key'], message });
  })
  .meta({ id: 'SecretSourceInput' });

/** A source as the API shows it: never its key or a value. */
export const sourceRecord = z
  .object({
    ...secretFacts,
    source: secretSource,
    /** The value that is held now; null if none is. */
    minted: z.object({ for: z.string(), at: time, until: time }).nullable(),
    /** Of the last value for a request, whether it is still held or not; null since the source was stored or changed. */
    last_minted_at: time.nullable(),
    /** The last failure since the last value. */
    failure: z.object({ message: z.string(), at: time }).nullable(),
    updated_at: time,
  })
  .meta({ id: 'SecretSourceRecord' });
export type SourceRecord = z.infer<typeof sourceRecord>;

/** An earlier control plane sends no cursor. */
export const sourcesPage = z
  .object({ items: z.array(sourceRecord), next_cursor: z.string().nullable().default(null) })
  .meta({ id: 'SecretSourcesPage' });
export type SourcesPage = z.infer<typeof sourcesPage>;
const MOST_SOURCES = 1_000;
/** By default as many as before there was a cursor. */
export const sourcesQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(MOST_SOURCES).default(MOST_SOURCES),
  cursor: pageQuery.cursor,
  owner: owner.optional(),
});

/** `POST /v1/secret-sources/dry-run`: a source that exists, or one that does not yet. Its key, if it is given, is checked. */
export const sourceDryRunInput = z
  .strictObject({
    path: sourcePath.optional(),
    owner: owner.default('personal'),
    source: secretSource.optional(),
    key: secretValue.optional(),
  })
  .superRefine(({ path, source, key }, context) => {
    if ((path === undefined) === (source === undefined)) {
      const message = 'is needed, or path: give exactly one of the two';
      context.addIssue({ code: 'custom', path: ['source'], message });
    }
    if (key !== undefined && source === undefined) {
      context.addIssue({ code: 'custom', path: ['key'], message: 'is only checked with a source' });
    }
  })
  .meta({ id: 'SecretSourceDryRun' });

/** What a mint would ask for. Nothing is asked, stored or shown of a value. */
export const sourcePlan = z
  .object({
    kind: z.enum([...SOURCE_KINDS, BORROWED_KIND]),
    /** A key set is a secret access key of AWS with its access key id and session token. A kept value is read where it is kept. */
    value: z.enum(['token', 'key_set', 'kept_value']),
    minted_for: z.string(),
    /** Who the value speaks for at the provider. */
    identity: z.string(),
    /** What bounds it; empty: whatever the provider gives that identity. */
    scope: z.array(z.string()),
    audience: z.string().nullable(),
    /** Null: the source signs the value itself, and no provider is called. */
    provider_url: z.string().nullable(),
    /** Null: the provider decides. */
    life_seconds: z.number().int().nullable(),
    /** If it were minted now. A provider may end it earlier. */
    until_at_latest: time,
    /** It has the form that is needed. False: it was not given, or only the provider can tell. */
    key_checked: z.boolean(),
  })
  .meta({ id: 'SecretSourcePlan' });
export type SourcePlan = z.infer<typeof sourcePlan>;

/** `POST /v1/secret-sources/test`: mints a value and discards it. It is revoked if the provider can. */
export const sourceTestInput = z
  .strictObject({ path: sourcePath, owner: owner.default('personal') })
  .meta({ id: 'SecretSourceTest' });
export const sourceTestReply = z
  .object({
    minted_for: z.string(),
    until: time,
    /** What became of the value. `ends`: its provider cannot revoke it. `kept`: it is that of a secret manager. Absent: an earlier control plane. */
    left: z.enum(['revoked', 'ends', 'not_revoked', 'kept']).optional(),
  })
  .meta({ id: 'SecretSourceTested' });
export type SourceTested = z.infer<typeof sourceTestReply>;
