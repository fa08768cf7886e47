import { err, ok, type Result } from '../../../../shared/model/result.ts';
import { Secret } from '../../../../shared/model/secret.ts';
import { secretValue } from '../../../../shared/wire/secrets.ts';
import type { SourceOf } from '../../../../shared/wire/secret_sources.ts';
import { type Minted, type MintFailure, type Minting, type MintingSource, UNTOLD_SECONDS } from '../source_port.ts';
import { authMount, hostOf, type KvVersion, logIn, readKv, readPath, revokeLogin, urlOf } from '../vault_calls.ts';

type Source = SourceOf<'vault_kv'>;

/** A field of a secret in Vault or OpenBao, which states no end. It is read again after {@link UNTOLD_SECONDS}. */
export const VAULT_KV: MintingSource<'vault_kv'> = {
  describe(source) {
    const { field, mount, secret_path: path, version, namespace } = source;
    const which = version === undefined ? '' : `, version ${version},`;
    return `the field ${field} of ${mount}/${path}${which} at ${hostOf(source)}${namespace === undefined ? '' : ` in the namespace ${namespace}`}`;
  },
  plan: (source) => ({
    identity:
      source.authentication === 'approle'
        ? `the role id ${source.role_id ?? ''}, which logs in at auth/${authMount(source)}`
        : 'the token of the source',
    scope: [`field ${source.field}`],
    audience: null,
    providerUrl: urlOf(source, readPath(source)),
    lifeSeconds: UNTOLD_SECONDS,
  }),
  async checkKey({ authentication }, key) {
    const what = authentication === 'approle' ? 'secret id' : 'token';
    if (/^[\x21-\x7e]{1,8192}$/.test(key.reveal())) return null;
    return { reason: 'invalid_key', message: `it is no ${what}: give it alone, as Vault shows it, without spaces` };
  },
  async mint(minting) {
    const { source, key, outbound } = minting;
    if (source.authentication === 'token') return valueOf(minting, await readKv(source, key, outbound));
    const token = await logIn(source, key, outbound);
    if (!token.ok) return token;
    const read = await readKv(source, token.value, outbound);
    await revokeLogin(source, token.value, outbound);
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
  const value = fields.get(source.field);
  if (value === undefined) return failed(source, 'is not in the secret: compare field with "vault kv get"');
  if (typeof value !== 'string') return failed(source, 'is not a text: store the value there as a JSON string');
  const { error } = secretValue.safeParse(value);
  if (error !== undefined) return failed(source, error.issues[0]?.message ?? 'cannot be used');
  const endsAtMs = nowMs + UNTOLD_SECONDS * 1000;
  return ok({ value: new Secret(value), expiresAtMs: Math.min(endsAtMs, deletedAtMs ?? endsAtMs) });
}

function failed(source: Source, problem: string): Result<never, MintFailure> {
  return err({ reason: 'failed', message: `the field ${source.field} at ${hostOf(source)} ${problem}` });
}
