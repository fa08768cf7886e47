import { z } from 'zod';
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
import type { SourceFields, SourceRules } from './source_descriptor.ts';

/** The kinds of sources, in the order in which people are shown them. A secret without a source has a stored value. */
export const SOURCE_TABLE = {
  client_credentials: CLIENT_CREDENTIALS,
  jwt_bearer: JWT_BEARER,
  token_exchange: TOKEN_EXCHANGE,
  google_service_account: GOOGLE_SERVICE_ACCOUNT,
  github_app: GITHUB_APP,
  aws_assume_role: AWS_ASSUME_ROLE,
  aws_web_identity: AWS_WEB_IDENTITY,
  vault_lease: VAULT_LEASE,
  vault_kv: VAULT_KV,
  aws_secrets_manager: AWS_SECRETS_MANAGER,
  google_secret_manager: GOOGLE_SECRET_MANAGER,
  onepassword_connect: ONEPASSWORD_CONNECT,
  doppler: DOPPLER,
  infisical: INFISICAL,
  borrowed: BORROWED,
};

type Table = typeof SOURCE_TABLE;
export type AnySourceKind = keyof Table;
/** The kinds of which the control plane has a value. */
export type SourceKind = {
  [K in AnySourceKind]: Table[K]['runs'] extends 'control_plane' ? K : never;
}[AnySourceKind];

export const SOURCE_KINDS = Object.keys(SOURCE_TABLE).filter((name) => isSourceKind(name));

export function isSourceKind(name: string): name is SourceKind {
  return Object.entries(SOURCE_TABLE).some(([kind, { runs }]) => kind === name && runs === 'control_plane');
}

const { borrowed: OF_MACHINES, ...OTHERS } = SOURCE_TABLE;
export const secretSource = z
  .discriminatedUnion('kind', [OF_MACHINES.schema, ...Object.values(OTHERS).map(({ schema }) => schema)])
  .meta({ id: 'SecretSource' });

/** A source of one of the kinds. */
export type SourceOf<K extends AnySourceKind> = {
  [P in K]: { readonly kind: P } & z.output<Table[P]['schema']>;
}[K];
export type SecretSource = SourceOf<AnySourceKind>;
export type MintedSource = SourceOf<SourceKind>;

export const SOURCE_RULES: { readonly [K in AnySourceKind]: SourceRules<SourceOf<K>> } = SOURCE_TABLE;

export function fieldsOf(kind: AnySourceKind): SourceFields {
  return SOURCE_TABLE[kind].fields;
}

export function isMinted(source: SecretSource): source is MintedSource {
  return isSourceKind(source.kind);
}

/** What the key of a source is called. */
export function sourceKeyName<K extends SourceKind>(source: SourceOf<K>): string {
  const { keyOf, keys } = SOURCE_RULES[source.kind];
  return keyOf?.(source) ?? keys[0] ?? '';
}

/** The longest life of a value that is asked for or believed; null if the provider alone decides. */
export function lifeSecondsOf(source: SecretSource): number | null {
  const own = 'duration_seconds' in source ? source.duration_seconds : undefined;
  return own ?? SOURCE_TABLE[source.kind].lifeSeconds;
}

/** Whether the provider of a source ends a value that nobody is to use any more. */
export function canRevoke(source: SecretSource): boolean {
  const { revokes } = SOURCE_TABLE[source.kind];
  if (revokes !== 'by revocation_url') return revokes === 'always';
  return 'revocation_url' in source && source.revocation_url !== undefined;
}
