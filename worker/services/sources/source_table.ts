import type { Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import {
  type AnySourceKind,
  canRevoke,
  SOURCE_TABLE,
  type SourceOf,
} from '../../../shared/wire/sources/source_table.ts';
import { AWS_ASSUME_ROLE } from './kinds/aws_assume_role.ts';
import { AWS_SECRETS_MANAGER } from './kinds/aws_secrets_manager.ts';
import { AWS_WEB_IDENTITY } from './kinds/aws_web_identity.ts';
import { BORROWED } from './kinds/borrowed.ts';
import { CLIENT_CREDENTIALS } from './kinds/client_credentials.ts';
import { DOPPLER } from './kinds/doppler.ts';
import { GITHUB_APP } from './kinds/github_app.ts';
import { GOOGLE_SECRET_MANAGER } from './kinds/google_secret_manager.ts';
import { GOOGLE_SERVICE_ACCOUNT } from './kinds/google_service_account.ts';
import { INFISICAL } from './kinds/infisical.ts';
import { JWT_BEARER } from './kinds/jwt_bearer.ts';
import { ONEPASSWORD_CONNECT } from './kinds/onepassword_connect.ts';
import { TOKEN_EXCHANGE } from './kinds/token_exchange.ts';
import { VAULT_KV } from './kinds/vault_kv.ts';
import { VAULT_LEASE } from './kinds/vault_lease.ts';
import type { KeyCheck, Minted, MintFailure, Minting, MintingSource, MintPlan, Revoking } from './source_port.ts';

/** How each kind of `shared/wire/sources/source_table.ts` mints. */
export const MINTING_TABLE: { readonly [K in AnySourceKind]: MintingSource<K> } = {
  aws_assume_role: AWS_ASSUME_ROLE,
  aws_secrets_manager: AWS_SECRETS_MANAGER,
  aws_web_identity: AWS_WEB_IDENTITY,
  borrowed: BORROWED,
  client_credentials: CLIENT_CREDENTIALS,
  doppler: DOPPLER,
  github_app: GITHUB_APP,
  google_secret_manager: GOOGLE_SECRET_MANAGER,
  google_service_account: GOOGLE_SERVICE_ACCOUNT,
  infisical: INFISICAL,
  jwt_bearer: JWT_BEARER,
  onepassword_connect: ONEPASSWORD_CONNECT,
  token_exchange: TOKEN_EXCHANGE,
  vault_kv: VAULT_KV,
  vault_lease: VAULT_LEASE,
};

/** A source with the implementation of its kind. */
interface ConfiguredSource {
  readonly describe: () => string;
  readonly plan: () => MintPlan;
  readonly checkKey: (key: Secret) => Promise<KeyCheck>;
  readonly mint: (how: Omit<Minting<AnySourceKind>, 'source'>) => Promise<Result<Minted, MintFailure>>;
  /** Null: its provider revokes nothing. */
  readonly revoke: ((how: Omit<Revoking<AnySourceKind>, 'source'>) => Promise<Result<void, MintFailure>>) | null;
  /** Whether a mint or a revocation may end the other values of the source. */
  readonly endsSiblings: boolean;
}

export function configured<K extends AnySourceKind>(source: SourceOf<K>): ConfiguredSource {
  const kind = MINTING_TABLE[source.kind];
  const { revoke } = kind;
  return {
    describe: () => kind.describe(source),
    plan: () => kind.plan(source),
    checkKey: (key) => kind.checkKey(source, key),
    mint: (how) => kind.mint({ ...how, source }),
    revoke: revoke === undefined || !canRevoke(source) ? null : (how) => revoke({ ...how, source }),
    endsSiblings: SOURCE_TABLE[source.kind].revokes === 'by revocation_url',
  };
}
