import { err, ok, type Result } from '../../shared/model/result.ts';
import type { MailSettings, SignInSettings } from '../../shared/model/sign_in_settings.ts';
import { PASSWORD_COST, type PasswordCost } from '../services/people/passwords.ts';
import type { Outbound } from '../kernel/outbound.ts';
import { HeldIssuers } from './issuer_documents.ts';
import {
  type Mail,
  createNotedMail,
  createPostedMail,
  createPrintedMail,
  MAIL,
  type PrintMail,
} from '../kernel/mail.ts';
import { SeenOutcomes } from '../kernel/seen_outcomes.ts';
import type { AuthProvider } from './provider.ts';
import { configureProviders } from './provider_table.ts';
import type { Clock } from '../kernel/clock.ts';

/** The configured ways to sign in. */
export interface SignInMethods {
  /** By name. */
  readonly providers: ReadonlyMap<string, AuthProvider>;
  /** The hosts allowed in callback URLs, lower-case, with a port if they have one. */
  readonly allowedHosts: readonly string[];
  /** Null: password sign-in is off, because no code could be sent. */
  readonly mail: Mail | null;
  readonly passwordCost: PasswordCost;
  readonly issuers: HeldIssuers;
  /** How mail and the documents of providers went. */
  readonly outcomes: SeenOutcomes;
}

/** What sign-in needs besides the settings. */
interface SignInParts {
  readonly outbound: Outbound;
  readonly isLocal: boolean;
  readonly printMail: PrintMail | null;
  /** The origin used in links for programs and connectors; null if it is not set. */
  readonly publicUrl: string | null;
  readonly clock: Pick<Clock, 'now'>;
}

const NONE: SignInSettings = { allowedHosts: [], providerVariables: {}, mail: null };

/** The error is a sentence: the settings are incomplete, or a hosted control plane lacks its own names. */
export function configureSignIn(
  settings: SignInSettings | undefined,
  parts: SignInParts,
): Result<SignInMethods, string> {
  const { providerVariables, mail: mailSettings } = settings ?? NONE;
  const allowedHosts = allowedHostsOf(settings ?? NONE, parts);
  const { outbound, isLocal } = parts;
  const outcomes = new SeenOutcomes();
  const issuers = new HeldIssuers(parts.clock, outcomes);
  const providers = configureProviders({ variables: providerVariables, outbound, isLocal, issuers });
  if (!providers.ok) return providers;
  const mail = configureMail(mailSettings, parts, outcomes);
  if (!mail.ok) return mail;
  const isOffered = providers.value.size > 0 || mail.value !== null;
  if (!isLocal && isOffered && parts.publicUrl === null) return err(NO_PUBLIC_URL);
  const passwordCost = PASSWORD_COST;
  return ok({ providers: providers.value, allowedHosts, mail: mail.value, passwordCost, issuers, outcomes });
}

/**
 * Sign-in redirects only to these hosts, so that nobody can take a sign-in over with a forged Host header. Default: the
 * host of the public URL.
 */
function allowedHostsOf({ allowedHosts }: SignInSettings, { isLocal, publicUrl }: SignInParts): readonly string[] {
  if (allowedHosts.length > 0 || isLocal || publicUrl === null) return allowedHosts;
  return [new URL(publicUrl).host];
}

/** A hosted control plane does not print mails: others than the recipients read its log. */
function configureMail(
  settings: MailSettings | null,
  parts: SignInParts,
  outcomes: SeenOutcomes,
): Result<Mail | null, string> {
  if (settings === null)
    return ok(parts.isLocal && parts.printMail !== null ? createPrintedMail(parts.printMail) : null);
  const { url, token, from } = settings;
  if (token === null) return err('SVC_MAIL_URL is set, but SVC_MAIL_TOKEN is not: set both');
  if (from === null) return err('SVC_MAIL_URL is set, but SVC_MAIL_FROM is not: set both');
  const now = () => parts.clock.now();
  const posted = createPostedMail({ url, token, from }, parts.outbound, now);
  return ok(createNotedMail(posted, (problem) => outcomes.note(MAIL, problem, now())));
}

const NO_PUBLIC_URL =
  'SVC_PUBLIC_URL is not set: give the origin of this control plane, such as https://control.example.com. "svc login" and connectors link to it, because a Host header can be forged';
