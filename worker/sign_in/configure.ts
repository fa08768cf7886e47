import { err, ok, type Result } from '../../shared/model/result.ts';
import type { SignInSettings } from '../../shared/model/sign_in_settings.ts';
import type { Outbound } from '../services/outbound.ts';
import type { AuthProvider } from './provider.ts';
import { configureProviders } from './provider_table.ts';

/** The ways to sign in that are set up. */
export interface SignInMethods {
  /** By name. */
  readonly providers: ReadonlyMap<string, AuthProvider>;
  /** The hosts that a callback URL may name; lower-case, with their port where they have one. */
  readonly allowedHosts: readonly string[];
}

const NONE: SignInSettings = { allowedHosts: [], providerVariables: {} };

/** Refuses with a sentence: a provider that is half set up, or a hosted control plane that does not say its own names. */
export function configureSignIn(
  settings: SignInSettings | undefined,
  outbound: Outbound,
  isLocal: boolean,
): Result<SignInMethods, string> {
  const { allowedHosts, providerVariables } = settings ?? NONE;
  const providers = configureProviders({ variables: providerVariables, outbound, isLocal });
  if (!providers.ok) return providers;
  if (!isLocal && providers.value.size > 0 && allowedHosts.length === 0) return err(NO_HOSTS);
  return ok({ providers: providers.value, allowedHosts });
}

const NO_HOSTS =
  'SVC_ALLOWED_HOSTS is not set: give the hosts that browsers call this control plane by, for a sign-in that leads anywhere else is taken over';
