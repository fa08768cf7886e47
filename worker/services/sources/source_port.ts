import type { Failure } from '../../../shared/model/failure.ts';
import type { Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import type { AnySourceKind, SourceOf } from '../../../shared/wire/sources/source_table.ts';
import type { Outbound } from '../../kernel/outbound.ts';

/** What a signature by a key set's secret access key names beside it. */
export interface SignedAs {
  readonly accessKeyId: string;
  readonly sessionToken: Secret;
}

/** A value that a provider issued. */
export interface Minted {
  /** Of a key set: its secret access key. */
  readonly value: Secret;
  /** The rest of a key set, of the same mint. */
  readonly signedAs?: SignedAs;
  /** Milliseconds since the epoch, by this machine's clock. */
  readonly expiresAtMs: number;
  /** What revokes it at the provider, if that needs more than the value and the key: the token of a login, the id of a lease. */
  readonly revokeBy?: Secret;
  /** Of an OAuth token, if the provider says it. */
  readonly grantedScopes?: readonly string[];
}

/** Why there is none. The message never contains a key, an assertion or a value, and no text of the provider but a code. */
export type MintFailure = Failure<'invalid_key' | 'failed'>;

/** Null: the key has the form that is needed. `unchecked`: it has none that is known, and only the provider can tell. */
export type KeyCheck = MintFailure | 'unchecked' | null;

export interface Minting<K extends AnySourceKind> {
  readonly source: SourceOf<K>;
  /** The client secret, the private key, the secret access key of the caller, the token to exchange, or Vault's token or secret id. */
  readonly key: Secret;
  readonly outbound: Outbound;
  readonly nowMs: number;
}

export interface Revoking<K extends AnySourceKind> extends Minting<K> {
  readonly minted: Pick<Minted, 'value' | 'revokeBy'>;
}

/**
 * How a kind of source mints. What it is made of, how long its values live, what they may be narrowed to and whether they are revoked is
 * in the file of the same name in `shared/wire/sources/kinds/`. What a value is narrowed to is part of the source, so that a binding that
 * may do less names a secret of its own.
 */
export interface MintingSource<K extends AnySourceKind> {
  /** What its values are for, in words without secrets, for people and the audit log. */
  describe(source: SourceOf<K>): string;
  /** What a mint would ask for. Nothing is asked. */
  plan(source: SourceOf<K>): MintPlan;
  /** Whether the key can be used; asked before it is stored. */
  checkKey(source: SourceOf<K>, key: Secret): Promise<KeyCheck>;
  mint(minting: Minting<K>): Promise<Result<Minted, MintFailure>>;
  /** Has the provider end a value that nobody is to use any more. Absent: its `revokes` is `never`, and the value ends by itself. */
  readonly revoke?: (revoking: Revoking<K>) => Promise<Result<void, MintFailure>>;
}

/** What a mint asks for, in words and names without secrets. */
export interface MintPlan {
  /** Who the value speaks for at the provider. */
  readonly identity: string;
  /** Scopes, permissions or policies that bound the value; empty: what the provider gives that identity. */
  readonly scope: readonly string[];
  readonly audience: string | null;
  /** The URL that is called; null if the source signs the value itself. */
  readonly providerUrl: string | null;
}
