import { err, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import { BORROWED_KIND, type SourceKind } from '../../../shared/model/source_kind.ts';
import type { SecretSource, SourceOf } from '../../../shared/wire/secret_sources.ts';
import { AWS_ASSUME_ROLE } from './kinds/aws_assume_role.ts';
import { AWS_WEB_IDENTITY } from './kinds/aws_web_identity.ts';
import { AWS_SECRETS_MANAGER } from './kinds/aws_secrets_manager.ts';
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
import {
  type KeyCheck,
  type Minted,
  type MintFailure,
  type Minting,
  type MintingSource,
  type MintPlan,
  type Revoking,
  UNTOLD_SECONDS,
} from './source_port.ts';

/** Why the control plane gives no value of a borrowed secret. */
export const BORROWED_WHY =
  'a program on the machine of each developer gives it, for requests of bindings and connectors only; see "svc secret borrow --help" there';

/** A source with the implementation of its kind. */
interface ConfiguredSource {
  readonly describe: () => string;
  readonly plan: () => MintPlan;
  readonly checkKey: (key: Secret) => Promise<KeyCheck>;
  readonly mint: (how: Omit<Minting<SourceKind>, 'source'>) => Promise<Result<Minted, MintFailure>>;
  /** Null: its provider revokes nothing. */
  readonly revoke: ((how: Omit<Revoking<SourceKind>, 'source'>) => Promise<Result<void, MintFailure>>) | null;
}

/** One line for each kind, checked by the compiler. */
export function configured(source: SecretSource): ConfiguredSource {
  if (source.kind === 'client_credentials') return configure(CLIENT_CREDENTIALS, source);
  if (source.kind === 'jwt_bearer') return configure(JWT_BEARER, source);
  if (source.kind === 'token_exchange') return configure(TOKEN_EXCHANGE, source);
  if (source.kind === 'google_service_account') return configure(GOOGLE_SERVICE_ACCOUNT, source);
  if (source.kind === 'aws_assume_role') return configure(AWS_ASSUME_ROLE, source);
  if (source.kind === 'aws_web_identity') return configure(AWS_WEB_IDENTITY, source);
  if (source.kind === 'vault_lease') return configure(VAULT_LEASE, source);
  if (source.kind === 'vault_kv') return configure(VAULT_KV, source);
  if (source.kind === 'aws_secrets_manager') return configure(AWS_SECRETS_MANAGER, source);
  if (source.kind === 'google_secret_manager') return configure(GOOGLE_SECRET_MANAGER, source);
  if (source.kind === 'onepassword_connect') return configure(ONEPASSWORD_CONNECT, source);
  if (source.kind === 'doppler') return configure(DOPPLER, source);
  if (source.kind === 'infisical') return configure(INFISICAL, source);
  if (source.kind === BORROWED_KIND) return BORROWED;
  return configure(GITHUB_APP, source);
}

/** The control plane has no value, and nobody can have it run a program. */
const BORROWED: ConfiguredSource = {
  describe: () => 'what a program on a machine gives there',
  plan: () => ({
    identity: 'whoever is signed in to that program',
    scope: [],
    audience: null,
    providerUrl: null,
    lifeSeconds: UNTOLD_SECONDS,
  }),
  checkKey: async () => null,
  mint: async () => err({ reason: 'failed', message: BORROWED_WHY }),
  revoke: null,
};

function configure<K extends SourceKind>(kind: MintingSource<K>, source: SourceOf<K>): ConfiguredSource {
  const { revoke, canRevoke } = kind;
  return {
    describe: () => kind.describe(source),
    plan: () => kind.plan(source),
    checkKey: (key) => kind.checkKey(source, key),
    mint: (how) => kind.mint({ ...how, source }),
    revoke: revoke === undefined || canRevoke?.(source) === false ? null : (how) => revoke({ ...how, source }),
  };
}
