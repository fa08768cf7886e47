import type { Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { Outbound } from '../kernel/outbound.ts';
import type { HeldIssuers } from './issuer_documents.ts';
import type { Failure } from '../../shared/model/failure.ts';

/**
 * A way to sign in by another service (specification section 5). A provider that must remember something across the
 * redirect, such as the PKCE verifier, returns it as `extraState` and gets it back; the caller keeps it in the browser.
 */
export interface AuthProvider {
  /** Its name in `/auth/{provider}/login`. */
  readonly name: string;
  /** The label of its button. */
  readonly title: string;
  authorizationURL(request: AuthorizationRequest): Promise<Result<AuthorizationResult, Failure<ProviderFailureReason>>>;
  exchange(callback: CallbackRequest): Promise<Result<Identity, Failure<ProviderFailureReason>>>;
}

export interface AuthorizationRequest {
  /** Unguessable; the provider returns it unchanged. */
  readonly state: string;
  readonly redirectURL: string;
}

interface AuthorizationResult {
  /** The URL that the browser goes to. */
  readonly url: string;
  /** Opaque; empty if the provider needs none. */
  readonly extraState: string;
}

export interface CallbackRequest {
  readonly code: string;
  readonly state: string;
  readonly redirectURL: string;
  readonly extraState: string;
  /** The issuer name in the provider's answer (RFC 9207); null if it sent none. */
  readonly issuer: string | null;
}

/** A person as known to a provider. `issuer` and `subject` identify a person permanently; the email may change. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string;
  /** False: the provider does not vouch that the address belongs to this person. */
  readonly emailVerified: boolean;
  readonly displayName: string;
}

/**
 * Why a provider returned no identity. The message is for the person at the browser; it never contains a token, a code
 * or a secret.
 */
export type ProviderFailureReason = 'provider_failed' | 'provider_refused' | 'email_required';

/** The values of a provider's environment variables, by name. */
type ProviderVariables = Readonly<Record<string, Secret>>;

/** What a provider is created with. */
export interface ProviderInput {
  readonly variables: ProviderVariables;
  readonly outbound: Outbound;
  /** In local mode a provider may be on loopback. */
  readonly isLocal: boolean;
  /** Cached documents of OpenID providers. */
  readonly issuers: HeldIssuers;
}

/** Creates a provider of this kind: null if none of its variables is set, a sentence if they are invalid. */
export interface ProviderEntry {
  readonly name: string;
  configure(input: ProviderInput): Result<AuthProvider | null, string>;
}
