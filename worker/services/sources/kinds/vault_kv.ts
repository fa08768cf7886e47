import { ok, type Result } from '../../../../shared/model/result.ts';
import { UNTOLD_SECONDS } from '../../../../shared/wire/sources/source_descriptor.ts';
import type { Minted, MintFailure, Minting, MintingSource } from '../source_port.ts';
import {
  fieldOf,
  identityOf,
  keyProblemOf,
  type KvVersion,
  openAccess,
  placeOf,
  readKv,
  readPath,
  revokeLogin,
  urlOf,
} from '../vault_calls.ts';

/** A field of a secret in Vault or OpenBao, which states no end. It is read again after {@link UNTOLD_SECONDS}. */
export const VAULT_KV: MintingSource<'vault_kv'> = {
  describe(source) {
    const { field, mount, secret_path: path, version } = source;
    const which = version === undefined ? '' : `, version ${version},`;
    return `the field ${field} of ${mount}/${path}${which} at ${placeOf(source)}`;
  },
  plan: (source) => ({
    identity: identityOf(source),
    scope: [`field ${source.field}`],
    audience: null,
    providerUrl: urlOf(source, readPath(source)),
  }),
  checkKey: keyProblemOf,
  async mint(minting) {
    const { source, outbound } = minting;
    const access = await openAccess(minting);
    if (!access.ok) return access;
    const { token } = access.value;
    const read = await readKv(source, token, outbound);
    if (source.authentication !== 'token') await revokeLogin(source, token, outbound);
    return valueOf(minting, read);
  },
};

/** The end counts from before the first call. A version that Vault deletes earlier ends then. */
function valueOf(
  { source, nowMs }: Minting<'vault_kv'>,
  read: Result<KvVersion, MintFailure>,
): Result<Minted, MintFailure> {
  if (!read.ok) return read;
  const { fields, deletedAtMs } = read.value;
  const value = fieldOf(source, fields);
  if (!value.ok) return value;
  const endsAtMs = nowMs + UNTOLD_SECONDS * 1000;
  return ok({ value: value.value, expiresAtMs: Math.min(endsAtMs, deletedAtMs ?? endsAtMs) });
}
