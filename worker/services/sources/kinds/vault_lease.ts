import { err, ok, type Result } from '../../../../shared/model/result.ts';
import type { Minted, MintFailure, Minting, MintingSource } from '../source_port.ts';
import {
  type Access,
  encodePath,
  fieldOf,
  identityOf,
  keyProblemOf,
  openAccess,
  placeOf,
  readLease,
  revokeLease,
  revokeLogin,
  tokenSeconds,
  urlOf,
} from '../vault_calls.ts';

/**
 * A field of a secret that an engine of Vault or OpenBao makes for each mint. It ends with its lease, or with the token of the read,
 * which ends its leases. So the token of a login is not revoked.
 */
export const VAULT_LEASE: MintingSource<'vault_lease'> = {
  describe: (source) => `the field ${source.field} of a lease of ${source.lease_path} at ${placeOf(source)}`,
  plan: (source) => ({
    identity: identityOf(source),
    scope: [`field ${source.field}`],
    audience: null,
    providerUrl: urlOf(source, encodePath(source.lease_path)),
  }),
  checkKey: keyProblemOf,
  async mint(minting) {
    const { source, outbound } = minting;
    const access = await openAccess(minting);
    if (!access.ok) return access;
    const minted = await mintLease(minting, access.value);
    if (!minted.ok && source.authentication !== 'token') await revokeLogin(source, access.value.token, outbound);
    return minted;
  },
  revoke({ source, key, outbound, minted: { revokeBy } }) {
    if (revokeBy === undefined) {
      const message = 'what would revoke it at Vault was not stored with it, so it ends by itself';
      return Promise.resolve(err({ reason: 'failed', message }));
    }
    if (source.authentication !== 'token') return revokeLogin(source, revokeBy, outbound);
    return revokeLease(source, { token: key, leaseId: revokeBy, outbound });
  },
};

async function mintLease(
  { source, outbound, nowMs }: Minting<'vault_lease'>,
  { token, lifeSeconds }: Access,
): Promise<Result<Minted, MintFailure>> {
  const isOwn = source.authentication === 'token';
  const tokenLife = isOwn ? await tokenSeconds(source, token, outbound) : ok(lifeSeconds);
  if (!tokenLife.ok) return tokenLife;
  const lease = await readLease(source, token, outbound);
  if (!lease.ok) return lease;
  const value = fieldOf(source, lease.value.fields);
  if (!value.ok) {
    // Nobody uses what was made.
    await revokeLease(source, { token, leaseId: lease.value.id, outbound });
    return value;
  }
  const seconds = Math.min(lease.value.seconds, tokenLife.value ?? Infinity);
  const revokeBy = isOwn ? lease.value.id : token;
  return ok({ value: value.value, revokeBy, expiresAtMs: nowMs + seconds * 1000 });
}
