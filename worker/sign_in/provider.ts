import type { Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { Outbound } from '../kernel/outbound.ts';
import type { HeldIssuers } from './issuer_documents.ts';

/**
 * A way to sign in by another service (specification section 5). What a provider has to remember across the redirect, such
 * as the verifier of PKCE, it gives out as `extraState` and is given back; who calls it keeps that in the browser.
 */
export interface AuthProvider {
  /** What `/auth/{provider}/login` calls it. */
  readonly name: string;
  /** What a button says. */
  readonly title: string;
  authorizationURL(request: AuthorizationRequest): Promise<Result<AuthorizationResult, ProviderError>>;
  exchange(callback: CallbackRequest): Promise<Result<Identity, ProviderError>>;
}

export interface AuthorizationRequest {
  /** Unguessable; the provider hands it back as it is. */
  readonly state: string;
  readonly redirectURL: string;
}

export interface AuthorizationResult {
  /** Where the browser goes. */
  readonly url: string;
  /** Opaque; empty for a provider that needs none. */
  readonly extraState: string;
}

export interface CallbackRequest {
  readonly code: string;
  readonly state: string;
  readonly redirectURL: string;
  readonly extraState: string;
  /** The name that the provider gave itself in the answer (RFC 9207); null when it gave none. */
  readonly issuer: string | null;
}

/** Who somebody is, as a provider has it. `issuer` and `subject` name a person for good; the email may change. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string;
  /** False: the provider does not say that the address is this person's. */
  readonly emailVerified: boolean;
  readonly displayName: string;
}

/** Why a provider gave no identity. */
export interface ProviderError {
  readonly reason: 'provider_failed' | 'provider_refused' | 'email_required';
  /** For the person in front of the browser. Never a token, a code or a secret. */
  readonly message: string;
}

/** The values of a provider's environment variables, by name. */
export type ProviderVariables = Readonly<Record<string, Secret>>;

/** What a provider is made with. */
export interface ProviderInput {
  readonly variables: ProviderVariables;
  readonly outbound: Outbound;
  /** Local mode, where a provider may be on loopback. */
  readonly isLocal: boolean;
  /** The documents of OpenID providers that are held. */
  readonly issuers: HeldIssuers;
}

/** A kind of provider: null when none of its variables is set, a sentence when they cannot be used. */
export interface ProviderEntry {
  readonly name: string;
  configure(input: ProviderInput): Result<AuthProvider | null, string>;
}
