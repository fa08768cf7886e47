import { err, ok, type Result } from '../../shared/model/result.ts';
import type { MailSettings, SignInSettings } from '../../shared/model/sign_in_settings.ts';
import { PASSWORD_COST, type PasswordCost } from '../services/people/passwords.ts';
import type { Outbound } from '../kernel/outbound.ts';
import type { Clock } from '../kernel/service_context.ts';
import { HeldIssuers } from './issuer_documents.ts';
import { type Mail, postedMail, printedMail, type PrintMail } from './mail.ts';
import type { AuthProvider } from './provider.ts';
import { configureProviders } from './provider_table.ts';

/** The ways to sign in that are set up. */
export interface SignInMethods {
  /** By name. */
  readonly providers: ReadonlyMap<string, AuthProvider>;
  /** The hosts that a callback URL may name; lower-case, with their port where they have one. */
  readonly allowedHosts: readonly string[];
  /** Null: nobody signs in with a password, for no code could be sent. */
  readonly mail: Mail | null;
  readonly passwordCost: PasswordCost;
  readonly issuers: HeldIssuers;
}

/** What they are set up with, beside the settings. */
export interface SignInParts {
  readonly outbound: Outbound;
  readonly isLocal: boolean;
  readonly printMail: PrintMail | null;
  /** The origin that programs and connectors lead people to; null when nobody has set it. */
  readonly publicUrl: string | null;
  readonly clock: Pick<Clock, 'now'>;
}

const NONE: SignInSettings = { allowedHosts: [], providerVariables: {}, mail: null };

/** Refuses with a sentence: what is half set up, or a hosted control plane that was not told its own names. */
export function configureSignIn(
  settings: SignInSettings | undefined,
  parts: SignInParts,
): Result<SignInMethods, string> {
  const { allowedHosts, providerVariables, mail: mailSettings } = settings ?? NONE;
  const { outbound, isLocal } = parts;
  const issuers = new HeldIssuers(parts.clock);
  const providers = configureProviders({ variables: providerVariables, outbound, isLocal, issuers });
  if (!providers.ok) return providers;
  const mail = configureMail(mailSettings, parts);
  if (!mail.ok) return mail;
  const isOffered = providers.value.size > 0 || mail.value !== null;
  if (!isLocal && isOffered && allowedHosts.length === 0) return err(NO_HOSTS);
  if (!isLocal && isOffered && parts.publicUrl === null) return err(NO_PUBLIC_URL);
  const passwordCost = PASSWORD_COST;
  return ok({ providers: providers.value, allowedHosts, mail: mail.value, passwordCost, issuers });
}

/** A hosted control plane prints no mail: its log is read by others than those who get the codes. */
function configureMail(settings: MailSettings | null, parts: SignInParts): Result<Mail | null, string> {
  if (settings === null) return ok(parts.isLocal && parts.printMail !== null ? printedMail(parts.printMail) : null);
  const { url, token, from } = settings;
  if (token === null) return err('SVC_MAIL_TOKEN is not set, and SVC_MAIL_URL is: set both');
  if (from === null) return err('SVC_MAIL_FROM is not set, and SVC_MAIL_URL is: set both');
  return ok(postedMail({ url, token, from }, parts.outbound));
}

const NO_HOSTS =
  'SVC_ALLOWED_HOSTS is not set: give the hosts that browsers call this control plane by, for a sign-in that leads anywhere else is taken over';
const NO_PUBLIC_URL =
  'SVC_PUBLIC_URL is not set: give the origin of this control plane, such as https://control.example.com, for "svc login" and connectors lead people to it, and a Host header may name any';
