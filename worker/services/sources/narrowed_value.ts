import { err, ok, type Result } from '../../../shared/model/result.ts';
import { BORROWED_KIND } from '../../../shared/model/source_kind.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { narrowSource } from '../../../shared/wire/sources/narrow_source.ts';
import type { Narrowing } from '../../../shared/wire/sources/narrowing.ts';
import { commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { SecretRow } from '../../store/secrets.ts';
import { findSource } from '../../store/sources/secret_sources.ts';
import { revokeDiscarded } from './given_up_values.ts';
import { changedError, type CurrentValue, mint, unavailable } from './minted_value.ts';
import { mintedForOf, mintEvent, sourceOf } from './sourced_secret.ts';
import type { Minted } from './source_port.ts';

/**
 * A value of a secret's source for less than the source allows, minted for one call (decision 0119). It is stored nowhere, and so
 * never given to another session. Refuses with `credential_unavailable` what has no source, or would be more.
 */
export async function narrowedCredential(
  context: ServiceContext,
  row: SecretRow,
  narrowing: Narrowing,
): Promise<Result<CurrentValue, ApiError>> {
  const read = await findSource(context.database, row.id);
  const reference = formatVaultReference(row.path);
  if (read === null || read.source.kind === BORROWED_KIND) {
    return err(refuse(reference, 'no source of the control plane mints it'));
  }
  if (read.secret.version !== row.version) return err(changedError(row));
  const source = narrowSource(sourceOf(read.source), narrowing);
  if (!source.ok) return err(refuse(reference, source.error));
  const turn = context.narrowedMints.take('mint', row.id);
  if (!turn.isAdmitted) {
    const why = `so many narrowed values were minted in the last minute that its provider is not asked: try again in ${turn.retryAfterSeconds} s`;
    return err(unavailable(read, why));
  }
  const minted = await mint(context, read, source.value);
  if (!minted.ok) return err(unavailable(read, minted.error.message));
  if (isForMore(minted.value, narrowing)) {
    revokeDiscarded(context, read, minted.value);
    return err(unavailable(read, 'its provider issued a token for more than was asked, which was discarded'));
  }
  const until = new Date(minted.value.expiresAtMs).toISOString();
  const about = { 'svc.control.minted_for': mintedForOf(read, source.value), 'svc.control.until': until };
  const recorded = await commit(context, controlChain(read.secret), async () => {
    const now = await findSource(context.database, row.id);
    const isSame = now?.source.updatedAt === read.source.updatedAt && now.secret.version === row.version;
    return isSame
      ? ok({ statements: [], events: [mintEvent('control.secret.minted', read, about)], value: true })
      : ok({ statements: [], events: [], value: false });
  });
  if (!recorded.ok || !recorded.value) revokeDiscarded(context, read, minted.value);
  if (!recorded.ok) return recorded;
  if (!recorded.value) return err(changedError(row));
  const { value: secret, signedAs } = minted.value;
  return ok({ secret, ...(signedAs && { signedAs }), expiresAt: until });
}

/** Whether a provider says that a token has a scope that was left out. One that says nothing issued what was asked. */
function isForMore({ grantedScopes = [] }: Minted, { scopes }: Narrowing): boolean {
  return scopes !== undefined && grantedScopes.some((scope) => !scopes.includes(scope));
}

function refuse(reference: string, why: string): ApiError {
  return apiError('credential_unavailable', `${reference} cannot be narrowed: ${why}`, { ref: reference });
}
