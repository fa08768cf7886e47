import { ok, type Result } from '../../../shared/model/result.ts';
import { MAX_SECRET_BYTES, Secret } from '../../../shared/model/secret.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { SecretCheckReply } from '../../../shared/wire/secrets.ts';
import {
  type SecretRow,
  secretsWithFingerprint,
  secretsWithoutFingerprint,
  setFingerprint,
} from '../../store/secrets.ts';
import { type Caller, ownerName, visibleOwners } from '../../kernel/caller.ts';
import { WRITE_CONTENTION } from '../../kernel/commit.ts';
import { openRow } from './secrets.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/**
 * Which of these values equal secrets that the caller sees, its own or the enterprise's. The result contains no value.
 */
export async function checkValues(
  context: ServiceContext,
  caller: Caller,
  values: readonly string[],
): Promise<Result<SecretCheckReply, ApiError>> {
  const owners = visibleOwners(caller);
  await fillFingerprints(context, owners);
  const indexes = await indexesByFingerprint(context, owners, values);
  if (indexes.size === 0) return ok({ matches: [] });
  const found = await secretsWithFingerprint(context.database, owners, [...indexes.keys()]);
  const matches = found.flatMap(({ ownerId, path, fingerprint }) =>
    (indexes.get(fingerprint ?? '') ?? []).map((index) => ({ index, path, owner: ownerName(ownerId) })),
  );
  return ok({ matches: matches.toSorted((a, b) => a.index - b.index) });
}

/** Maps the fingerprint that each value would have with each owner to the places of the value. */
async function indexesByFingerprint(
  context: ServiceContext,
  owners: readonly string[],
  values: readonly string[],
): Promise<ReadonlyMap<string, readonly number[]>> {
  const comparable = values.flatMap((value, index) =>
    value === '' || value.length > MAX_SECRET_BYTES ? [] : owners.map((owner) => ({ index, owner, value })),
  );
  const fingerprints = await Promise.all(
    comparable.map(({ owner, value }) => context.vault.fingerprint(owner, new Secret(value))),
  );
  const indexes = new Map<string, number[]>();
  for (const [at, fingerprint] of fingerprints.entries()) {
    const index = comparable[at]?.index ?? 0;
    indexes.set(fingerprint, [...(indexes.get(fingerprint) ?? []), index]);
  }
  return indexes;
}

const ROWS_AT_A_TIME = 100;

/**
 * Creates fingerprints that are missing or were made with an earlier master key: a secret without one would not match.
 */
async function fillFingerprints(context: ServiceContext, owners: readonly string[]): Promise<void> {
  const page = { mark: context.vault.fingerprintMark, limit: ROWS_AT_A_TIME };
  for (;;) {
    const rows = await secretsWithoutFingerprint(context.database, owners, page);
    if (rows.length === 0) return;
    const fingerprints = await Promise.all(rows.map((row) => fingerprintOf(context, row)));
    const noted = rows.map((row, at) => setFingerprint(context.database, row, fingerprints[at] ?? ''));
    const written = await context.database.write(noted);
    if (!written.ok) throw Object.assign(new Error('storing fingerprints failed'), { code: WRITE_CONTENTION });
  }
}

async function fingerprintOf(context: ServiceContext, row: SecretRow): Promise<string> {
  return context.vault.fingerprint(row.ownerId, await openRow(context, row));
}
