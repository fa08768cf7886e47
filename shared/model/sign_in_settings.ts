import { err, ok, type Result } from './result.ts';
import { Secret } from './secret.ts';
import type { Setting } from './setting.ts';

/** The sign-in settings of the environment. */
export interface SignInSettings {
  /** The hosts, with optional ports, under which this control plane is reachable. */
  readonly allowedHosts: readonly string[];
  /** The providers' own variables, by name; each provider reads its own. */
  readonly providerVariables: Readonly<Record<string, Secret>>;
  /** Null: no mail is sent, and a hosted control plane has no password sign-in. */
  readonly mail: MailSettings | null;
}

/** A service that sends mail. */
export interface MailSettings {
  readonly url: string;
  readonly token: Secret | null;
  /** The sender's address. */
  readonly from: string | null;
}

const ALLOWED_HOSTS = 'SVC_ALLOWED_HOSTS';

/** The providers' variables, in the order of docs/reference/settings.md. */
const PROVIDER_SETTINGS: readonly Setting[] = [
  provider('GENERAL_OAUTH_ISSUER', 'none', 'issuer of the OpenID provider `general`'),
  provider('GENERAL_OAUTH_CLIENT_ID', 'none: not offered', 'client id at the provider `general`'),
  provider('GENERAL_OAUTH_CLIENT_SECRET', 'none', 'secret of that client'),
  provider('CODEHOST_OAUTH_CLIENT_ID', 'none: not offered', 'client id at the code host'),
  provider('CODEHOST_OAUTH_CLIENT_SECRET', 'none', 'secret of that client'),
  provider('CODEHOST_OAUTH_URL', 'https://github.com', 'URL where people sign in to the code host'),
  provider('CODEHOST_OAUTH_API_URL', 'https://api.github.com', 'URL of the code host’s API'),
];

/** The settings of sign-in, in the order of docs/reference/settings.md. */
export const SIGN_IN_SETTINGS: readonly Setting[] = [
  {
    name: ALLOWED_HOSTS,
    flag: null,
    default: 'the host of `SVC_PUBLIC_URL`; loopback names in local mode',
    meaning: 'host names of a hosted control plane in browsers, separated by `,`',
    readBy: ['control'],
  },
  ...PROVIDER_SETTINGS,
  provider(
    'SVC_MAIL_URL',
    'none: no passwords when hosted',
    'https URL that takes `{from, to, subject, text}` as JSON and sends it',
  ),
  provider('SVC_MAIL_TOKEN', 'none', 'bearer token for it'),
  provider('SVC_MAIL_FROM', 'none', "sender's address of the mails"),
];

function provider(name: string, otherwise: string, meaning: string): Setting {
  return { name, flag: null, default: otherwise, meaning, readBy: ['control'] };
}

type Read = <T>(name: string, parse: (text: string) => Result<T, string>) => T | undefined;

/** Reads the settings; reports a bad value by its name. */
export function readSignInSettings(read: Read): SignInSettings {
  const variables = PROVIDER_SETTINGS.map(({ name }) => [name, read(name, parseVariable)] as const);
  const given = variables.filter((entry): entry is [string, Secret] => entry[1] !== undefined);
  const providerVariables = Object.fromEntries(given);
  return { allowedHosts: read(ALLOWED_HOSTS, parseHosts) ?? [], providerVariables, mail: readMail(read) };
}

function readMail(read: Read): MailSettings | null {
  const url = read('SVC_MAIL_URL', parseMailUrl);
  const token = read('SVC_MAIL_TOKEN', parseVariable) ?? null;
  const from = read('SVC_MAIL_FROM', parseSender) ?? null;
  return url === undefined ? null : { url, token, from };
}

function parseMailUrl(text: string): Result<string, string> {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url?.protocol === 'https:' && url.username === '' && url.password === '' && url.port === '';
  return isPlain
    ? ok(text)
    : err('is not an https URL without a port, a user or a password: use the URL of your mail service');
}

function parseSender(text: string): Result<string, string> {
  return /^[^\s@<>]+@[^\s@<>]+$/.test(text) ? ok(text) : err('is not a plain address: use one such as svc@example.com');
}

function parseVariable(text: string): Result<Secret, string> {
  return /^[\x21-\x7e]+$/.test(text)
    ? ok(new Secret(text))
    : err('contains a space or a non-ASCII character: give only the value, without quotes or a line break');
}

const HOST = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::\d{1,5})?$/;

function parseHosts(text: string): Result<readonly string[], string> {
  const hosts = text.split(',').map((host) => host.trim().toLowerCase());
  const wrong = hosts.find((host) => !HOST.test(host));
  if (wrong === undefined) return ok(hosts);
  return err(`contains ${JSON.stringify(wrong)}: use plain hosts such as control.example.com, separated by commas`);
}
