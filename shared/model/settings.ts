import type { Setting, SettingProblem } from './setting.ts';
import { ANCHOR_SETTINGS, anchorProblems, type AnchorSettings, readAnchorSettings } from './anchor_settings.ts';
import { formatQuantity, isControlLimit, LIMIT_SETTINGS, parseQuantity } from './limit_settings.ts';
import { DEFAULT_LIMITS, type Limits } from './limits.ts';
import { err, ok, type Result } from './result.ts';
import { Secret } from './secret.ts';
import { readSignInSettings, SIGN_IN_SETTINGS, type SignInSettings } from './sign_in_settings.ts';
import { isLoopbackHostname } from './loopback_hostname.ts';

/** Percent of its defaults that every quota is, unless it is set (decision 0174). */
export const DEFAULT_QUOTA_PERCENT = 100;
/** The public registry (specification section 9; only its `/v0/servers` is used). */
export const DEFAULT_REGISTRY_URL = 'https://registry.modelcontextprotocol.io';

/** The default ports of `svc up`. */
export const DEFAULT_CONTROL_PORT = 7420;
export const DEFAULT_PROXY_PORT = 7421;

/** The checked settings of the environment. A setting that is not set is undefined; the limits are always complete. */
export interface Settings {
  readonly home?: string;
  readonly controlUrl?: string;
  /** 32 bytes as base64url. */
  readonly vaultKey?: Secret;
  /** The old master key, used only for reading during a rotation. */
  readonly vaultKeyPrevious?: Secret;
  /** What opens the file of the master key, if it is protected so; or the file that has it. */
  readonly vaultPassphrase?: Secret;
  readonly vaultPassphraseFile?: string;
  /** What may use the key of a KMS that wraps the master key, and the service's URL if it is not the cloud's own. */
  readonly kmsCredentialsFile?: string;
  readonly kmsUrl?: string;
  /** For how many days audit events are kept; indefinitely if not set. */
  readonly auditRetentionDays?: number;
  /** Of one enterprise, at each worker; absent: no limit. */
  readonly callsPerMinute?: number;
  /** How much people and enterprises may keep, in percent of the defaults; absent: as much as the defaults. */
  readonly quotaPercent?: number;
  /** Where the heads of the audit log are sent; nowhere if not set. */
  readonly anchors?: AnchorSettings;
  readonly databaseUrl?: string;
  readonly databaseToken?: Secret;
  readonly databaseReplicaUrl?: string;
  readonly publicUrl?: string;
  /** The client metadata document for sign-ins to remote MCP servers. */
  readonly mcpClientUrl?: string;
  readonly registryUrl?: string;
  readonly signIn: SignInSettings;
  readonly upstreamCaFiles: readonly string[];
  readonly privateHosts: readonly string[];
  readonly sandboxProxy?: SandboxProxy;
  readonly agentSandbox?: AgentSandbox;
  readonly sandboxEngine?: SandboxEngine;
  readonly sandboxImage?: string;
  readonly agentBaseImage?: string;
  readonly limits: Limits;
}

/** Whether launches use the proxy; `auto` is `on` for the supported container runtime (specification section 1). */
export const SANDBOX_PROXY_VALUES = ['auto', 'on', 'off'] as const;
export type SandboxProxy = (typeof SANDBOX_PROXY_VALUES)[number];
/** The container engines. */
export const SANDBOX_ENGINES = ['docker', 'podman'] as const;
export type SandboxEngine = (typeof SANDBOX_ENGINES)[number];
/**
 * An engine of this machine: the socket of a Docker Engine (`unix:///...`), or podman, which is no service, by the folder where it
 * keeps its containers (`podman:/...`): each user has one, and root another.
 */
export const ENGINE_ENDPOINT = /^(?:unix:\/\/|podman:)\/[^\0]+$/;
const AGENT_SANDBOX_VALUES = ['auto', 'always', 'never'] as const;
type AgentSandbox = (typeof AGENT_SANDBOX_VALUES)[number];

/** A removed setting (specification section 9), and its replacement. */
export const REMOVED_SANDBOX_PROXY_SETTING = 'SVC_SANDBOX_PROXY_BOOTSTRAP';

const GENERAL_SETTINGS: readonly Setting[] = [
  {
    name: 'SVC_HOME',
    flag: '--home',
    default: '~/.svc',
    meaning: 'directory of all local state, mode 0700',
    readBy: ['control', 'cli'],
  },
  {
    name: 'SVC_CONTROL_URL',
    flag: '--control',
    default: 'what `svc up` listens on',
    meaning: 'origin of the control plane; https, or http on loopback',
    readBy: ['cli'],
  },
  {
    name: 'SVC_VAULT_KEY',
    flag: null,
    default: '$SVC_HOME/vault.key, made once',
    meaning: 'master key of the vault: 32 bytes as base64url',
    readBy: ['control'],
  },
  {
    name: 'SVC_VAULT_KEY_PREVIOUS',
    flag: null,
    default: 'none',
    meaning: 'the old master key, until `svc vault rotate` has finished',
    readBy: ['control'],
  },
  {
    name: 'SVC_VAULT_PASSPHRASE_FILE',
    flag: null,
    default: 'none: svc asks at a terminal',
    meaning: 'file with the passphrase of a vault.key that `svc vault protect passphrase` protects',
    readBy: ['control'],
  },
  {
    name: 'SVC_VAULT_PASSPHRASE',
    flag: null,
    default: 'none',
    meaning: 'the passphrase itself; programs of the same user can read it, so prefer the file',
    readBy: ['control'],
  },
  {
    name: 'SVC_KMS_CREDENTIALS_FILE',
    flag: null,
    default: 'none',
    meaning:
      'file with the AWS keys (JSON, as `aws configure export-credentials` prints them) or the Google service account key that may use the key of `svc vault protect kms`',
    readBy: ['control'],
  },
  {
    name: 'SVC_KMS_URL',
    flag: null,
    default: "the cloud's own",
    meaning: 'origin of the KMS, such as that of a VPC endpoint; https, or http on loopback',
    readBy: ['control'],
  },
  {
    name: 'SVC_AUDIT_RETENTION_DAYS',
    flag: null,
    default: 'none: all are kept',
    meaning: 'audit events are removed this many days after they were received; a sealed note records it',
    readBy: ['control'],
  },
  {
    name: 'SVC_MAX_CALLS_PER_MINUTE',
    flag: null,
    default: 'none',
    meaning:
      'calls of the API that the people of one enterprise may make, and as many its sidecars and its directory; each worker counts for itself (hosted)',
    readBy: ['control'],
  },
  {
    name: 'SVC_QUOTA_PERCENT',
    flag: null,
    default: String(DEFAULT_QUOTA_PERCENT),
    meaning:
      'how many secrets, bindings, sidecars and other things people and enterprises may keep, and of how many bytes, in percent of the defaults (docs/reference/quotas.md)',
    readBy: ['control'],
  },
  ...ANCHOR_SETTINGS,
  {
    name: 'SVC_DATABASE_URL',
    flag: null,
    default: 'file: $SVC_HOME/control.db',
    meaning: 'libSQL database: file:, libsql:, https: or (on loopback) http:',
    readBy: ['control'],
  },
  {
    name: 'SVC_DATABASE_TOKEN',
    flag: null,
    default: 'none',
    meaning: 'token for a libSQL server, and for its replica',
    readBy: ['control'],
  },
  {
    name: 'SVC_DATABASE_REPLICA_URL',
    flag: null,
    default: 'none',
    meaning: 'read replica of the libSQL server; lists read from it may be slightly stale',
    readBy: ['control'],
  },
  {
    name: 'SVC_PUBLIC_URL',
    flag: null,
    default: 'none: no tokens are issued',
    meaning:
      'public origin of a hosted control plane, in links, tokens and mails; https, or http on loopback; required for sign-in',
    readBy: ['control'],
  },
  {
    name: 'SVC_LOCAL',
    flag: null,
    default: 'off',
    meaning: '`1`: a control plane on workerd runs in local mode, for one person (on Node and Deno: --local)',
    readBy: ['control'],
  },
  {
    name: 'SVC_LOCAL_KEY',
    flag: null,
    default: '$SVC_HOME/local.key, made once',
    meaning:
      'key of the local owner in local mode without a state directory: `svc_local_` and 43 characters of base64url; required on workerd',
    readBy: ['control'],
  },
  {
    name: 'SVC_MCP_CLIENT_URL',
    flag: null,
    default: 'its own document, if it is hosted under https; else none',
    meaning: 'URL of the client metadata document that this control plane signs in to remote MCP servers with; https',
    readBy: ['control'],
  },
  {
    name: 'SVC_REGISTRY_URL',
    flag: '--registry-url',
    default: DEFAULT_REGISTRY_URL,
    meaning: 'MCP registry of the marketplace; https, or http on loopback for `svc up`',
    readBy: ['control'],
  },
  {
    name: 'SVC_UPSTREAM_CA',
    flag: '--upstream-ca',
    default: 'none',
    meaning: 'PEM files with extra roots for upstreams, separated by `:`',
    readBy: ['sidecar', 'control', 'cli'],
  },
  {
    name: 'SVC_UPSTREAM_PROXY',
    flag: null,
    default: '`HTTPS_PROXY`, if set',
    meaning:
      'URL of the http or https proxy for all outgoing connections, with user and password if it asks for them; `NO_PROXY` exempts hosts; off: none',
    readBy: ['sidecar', 'control', 'cli'],
  },
  {
    name: 'SVC_UPSTREAM_PROXY_PUBLIC_ONLY',
    flag: null,
    default: 'off',
    meaning:
      'on: that proxy itself reaches public addresses only, so names that svc cannot resolve are sent to it where private addresses are not allowed',
    readBy: ['sidecar', 'control', 'cli'],
  },
  {
    name: 'SVC_PRIVATE_HOSTS',
    flag: null,
    default: 'none',
    meaning:
      'host names, separated by `,`, that a hosted control plane may call at a private address, such as an internal OpenID provider: at port 443, for syslog at 6514, and at another port if it is named, as in `vault.corp.example:8200`',
    readBy: ['control'],
  },
  {
    name: 'SVC_SANDBOX_PROXY',
    flag: '--sandbox-proxy',
    default: 'auto',
    meaning: 'whether `svc launch` uses the proxy: auto, on or off',
    readBy: ['cli'],
  },
  {
    name: 'SVC_SANDBOX_ENGINE',
    flag: '--sandbox',
    default: 'none',
    meaning:
      'container engine of launches, plans and images: docker or podman; without it Docker, or podman where no Docker Engine answers',
    readBy: ['cli'],
  },
  {
    name: 'SVC_SANDBOX_IMAGE',
    flag: '--image',
    default: 'none',
    meaning: 'image that `svc launch` runs',
    readBy: ['cli'],
  },
  {
    name: 'SVC_AGENT_SANDBOX',
    flag: '--sandbox',
    default: 'auto',
    meaning:
      'whether an agent that svc starts by its name has a sandbox: auto (where the machine can make one), always or never',
    readBy: ['cli'],
  },
  {
    name: 'SVC_AGENT_BASE_IMAGE',
    flag: '--base',
    default: '`node:24`',
    meaning: 'image with Node 22 or newer from which `svc launch AGENT` makes the image of an agent',
    readBy: ['cli'],
  },
];

/** Every setting, in the order of docs/reference/settings.md. */
export const SETTINGS: readonly Setting[] = [...GENERAL_SETTINGS, ...SIGN_IN_SETTINGS, ...limitRows()];

function limitRows(): Setting[] {
  return limitKeys().map((key) => {
    const range = LIMIT_SETTINGS[key];
    return {
      name: range.name,
      flag: null,
      default: formatQuantity(DEFAULT_LIMITS[key], range.unit),
      meaning: range.meaning,
      readBy: isControlLimit(key) ? ['control', 'sidecar'] : ['sidecar'],
    };
  });
}

function limitKeys(): (keyof Limits)[] {
  return Object.keys(LIMIT_SETTINGS).filter((key): key is keyof Limits => key in DEFAULT_LIMITS);
}

/** Reads the settings from an environment; every bad value is reported by name. Secret values are never quoted. */
export function parseSettings(
  env: Readonly<Record<string, string | undefined>>,
): Result<Settings, readonly SettingProblem[]> {
  const problems: SettingProblem[] = [];
  const read = <T>(name: string, parse: (text: string) => Result<T, string>): T | undefined => {
    const text = env[name];
    if (text === undefined) return undefined;
    const value = text === '' ? err('is empty: give it a value, or unset it') : parse(text);
    if (value.ok) return value.value;
    problems.push({ name, message: `${name} ${value.error}` });
    return undefined;
  };
  const home = read('SVC_HOME', parsePath);
  const controlUrl = read('SVC_CONTROL_URL', parseControlUrl);
  const vault = readVaultSettings(read);
  const auditRetentionDays = read('SVC_AUDIT_RETENTION_DAYS', parseDays);
  const callsPerMinute = read('SVC_MAX_CALLS_PER_MINUTE', parseCallsPerMinute);
  const quotaPercent = read('SVC_QUOTA_PERCENT', parseQuotaPercent);
  const anchors = readAnchorSettings(read);
  const databaseUrl = read('SVC_DATABASE_URL', parseDatabaseUrl);
  const databaseToken = read('SVC_DATABASE_TOKEN', parseToken);
  const publicUrl = read('SVC_PUBLIC_URL', parseControlUrl);
  const mcpClientUrl = read('SVC_MCP_CLIENT_URL', parseClientDocumentUrl);
  const registryUrl = read('SVC_REGISTRY_URL', parseRegistryUrl);
  const databaseReplicaUrl = read('SVC_DATABASE_REPLICA_URL', parseReplicaUrl);
  const signIn = readSignInSettings(read);
  const upstreamCaFiles = read('SVC_UPSTREAM_CA', parsePathList) ?? [];
  const privateHosts = read('SVC_PRIVATE_HOSTS', parseHostNames) ?? [];
  const sandbox = readSandboxSettings(read);
  const limits: Limits = { ...DEFAULT_LIMITS, ...readLimits(read) };
  if (limits.maxBufferedBodiesBytes < limits.maxCredentialedBodyBytes) {
    problems.push(buffersTooSmall(limits));
  }
  if (databaseReplicaUrl !== undefined && isFile(databaseUrl)) problems.push(REPLICA_OF_FILE);
  if (vault.vaultKeyPrevious !== undefined && env['SVC_VAULT_KEY'] === undefined) problems.push(PREVIOUS_KEY_ALONE);
  problems.push(...anchorProblems(env));
  if (problems.length > 0) return err(problems);
  const given = definedOnly({
    home,
    controlUrl,
    ...vault,
    auditRetentionDays,
    callsPerMinute,
    quotaPercent,
    anchors: anchors ?? undefined,
    databaseUrl,
    databaseToken,
    databaseReplicaUrl,
    publicUrl,
    mcpClientUrl,
    registryUrl,
    ...sandbox,
  });
  return ok({ ...given, signIn, upstreamCaFiles, privateHosts, limits });
}

type VaultSettings =
  | 'vaultKey'
  | 'vaultKeyPrevious'
  | 'vaultPassphrase'
  | 'vaultPassphraseFile'
  | 'kmsCredentialsFile'
  | 'kmsUrl';

function readVaultSettings(read: <T>(name: string, parse: (text: string) => Result<T, string>) => T | undefined): {
  readonly [K in VaultSettings]: Settings[K] | undefined;
} {
  return {
    vaultKey: read('SVC_VAULT_KEY', parseVaultKey),
    vaultKeyPrevious: read('SVC_VAULT_KEY_PREVIOUS', parseVaultKey),
    vaultPassphrase: read('SVC_VAULT_PASSPHRASE', parsePassphrase),
    vaultPassphraseFile: read('SVC_VAULT_PASSPHRASE_FILE', parsePath),
    kmsCredentialsFile: read('SVC_KMS_CREDENTIALS_FILE', parsePath),
    kmsUrl: read('SVC_KMS_URL', parseControlUrl),
  };
}

type SandboxSettings = 'sandboxProxy' | 'sandboxEngine' | 'sandboxImage' | 'agentBaseImage' | 'agentSandbox';

function readSandboxSettings(read: <T>(name: string, parse: (text: string) => Result<T, string>) => T | undefined): {
  readonly [K in SandboxSettings]: Settings[K] | undefined;
} {
  return {
    sandboxProxy: read('SVC_SANDBOX_PROXY', parseSandboxProxy),
    sandboxEngine: read('SVC_SANDBOX_ENGINE', parseSandboxEngine),
    sandboxImage: read('SVC_SANDBOX_IMAGE', parseImageReference),
    agentBaseImage: read('SVC_AGENT_BASE_IMAGE', parseImageReference),
    agentSandbox: read('SVC_AGENT_SANDBOX', parseAgentSandbox),
  };
}

/** Only the properties that have a value. */
function definedOnly<T extends object>(values: T): { readonly [K in keyof T]?: Exclude<T[K], undefined> } {
  const given: { [K in keyof T]?: Exclude<T[K], undefined> } = {};
  return Object.assign(given, Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)));
}

function readLimits(
  read: (name: string, parse: (text: string) => Result<number, string>) => number | undefined,
): Partial<Limits> {
  const entries = limitKeys().map((key) => {
    const range = LIMIT_SETTINGS[key];
    return [key, read(range.name, (text) => parseQuantity(text, range))] as const;
  });
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

function buffersTooSmall(limits: Limits): SettingProblem {
  const { name } = LIMIT_SETTINGS.maxBufferedBodiesBytes;
  const one = formatQuantity(limits.maxCredentialedBodyBytes, 'bytes');
  const other = LIMIT_SETTINGS.maxCredentialedBodyBytes.name;
  return { name, message: `${name} is less than one body (${other} = ${one}): raise it to ${one} or more` };
}

function parsePath(text: string): Result<string, string> {
  return text.includes('\0') ? err('contains a NUL character: give a plain path') : ok(text);
}

function parsePathList(text: string): Result<readonly string[], string> {
  const paths = text.split(':');
  return paths.includes('') ? err('has an empty entry: separate the files with one `:` each') : ok(paths);
}

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/;

function parseHostNames(text: string): Result<readonly string[], string> {
  const hosts = text.split(',').map((host) => host.trim().toLowerCase());
  const wrong = hosts.find((host) => !isHostOrPlace(host));
  if (wrong === undefined) return ok(hosts);
  return err(
    `contains ${JSON.stringify(wrong)}: use full host names such as idp.corp.example.com, separated by commas, if needed with a port, as in siem.corp.example.com:6515`,
  );
}

/** A host name, or one with a port. */
function isHostOrPlace(text: string): boolean {
  const [host = '', port, ...more] = text.split(':');
  const isPort = port === undefined || (/^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65_535);
  return HOST_NAME.test(host) && !/\.\d+$/.test(host) && isPort && more.length === 0;
}

/** `auto`, `on` or `off`, spelled exactly so. */
export function parseSandboxProxy(text: string): Result<SandboxProxy, string> {
  const value = SANDBOX_PROXY_VALUES.find((known) => known === text);
  return value === undefined ? err(`is ${JSON.stringify(text)}: use auto, on or off`) : ok(value);
}

function parseSandboxEngine(text: string): Result<SandboxEngine, string> {
  const value = SANDBOX_ENGINES.find((known) => known === text);
  return value === undefined ? err(`is ${JSON.stringify(text)}: use docker or podman`) : ok(value);
}

function parseAgentSandbox(text: string): Result<AgentSandbox, string> {
  const value = AGENT_SANDBOX_VALUES.find((known) => known === text);
  return value === undefined ? err(`is ${JSON.stringify(text)}: use auto, always or never`) : ok(value);
}

/** An image reference or id. A leading dash would be read as an option. */
export function parseImageReference(text: string): Result<string, string> {
  return /^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$/.test(text)
    ? ok(text)
    : err(`is ${JSON.stringify(text)}: use a reference such as team/agent:1 or an image id`);
}

const MAX_DAYS = 36_500;

function parseDays(text: string): Result<number, string> {
  const days = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= MAX_DAYS) return ok(days);
  return err(`is ${JSON.stringify(text)}: use a whole number of days from 1 to ${MAX_DAYS}, or unset it to keep all`);
}

/** Fewer would stop a person who works with the console and two sidecars. */
const LEAST_CALLS = 60;
const MOST_CALLS = 10_000_000;

function parseCallsPerMinute(text: string): Result<number, string> {
  const calls = /^\d{1,8}$/.test(text) ? Number(text) : 0;
  if (calls >= LEAST_CALLS && calls <= MOST_CALLS) return ok(calls);
  return err(
    `is ${JSON.stringify(text)}: use a whole number of calls from ${LEAST_CALLS} to ${MOST_CALLS}, or unset it for no limit`,
  );
}

/** A tenth of the defaults is enough for a person; more than a thousand times as much is no limit. */
const LEAST_PERCENT = 10;
const MOST_PERCENT = 100_000;

function parseQuotaPercent(text: string): Result<number, string> {
  const percent = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (percent >= LEAST_PERCENT && percent <= MOST_PERCENT) return ok(percent);
  return err(
    `is ${JSON.stringify(text)}: use a whole number from ${LEAST_PERCENT} to ${MOST_PERCENT}, such as 200 for twice the defaults`,
  );
}

function parseToken(text: string): Result<Secret, string> {
  return /^[\x21-\x7e]+$/.test(text)
    ? ok(new Secret(text))
    : err('contains a space or a non-ASCII character: give only the token, without quotes or a line break');
}

function parseVaultKey(text: string): Result<Secret, string> {
  // The last of 43 characters carries four bits of the key; its two low bits must be zero.
  return /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/.test(text)
    ? ok(new Secret(text))
    : err('is not 32 bytes as base64url (43 characters, no `=`): give the key that this database was made with');
}

/** Its length is checked when it begins to protect a key. */
function parsePassphrase(text: string): Result<Secret, string> {
  return text.includes('\0') ? err('contains a NUL character') : ok(new Secret(text));
}

function parseDatabaseUrl(text: string): Result<string, string> {
  const url = tryUrl(text);
  const remote = url?.protocol === 'libsql:' || url?.protocol === 'https:';
  const loopback = url?.protocol === 'http:' && isLoopbackHostname(url.hostname);
  if (url?.protocol === 'file:' || ((remote || loopback) && url.password === '' && url.username === '')) {
    return ok(text);
  }
  return err(
    'is not a usable libSQL URL: use file:PATH, libsql://HOST or https://HOST, with no user or password in it',
  );
}

function parseReplicaUrl(text: string): Result<string, string> {
  const url = parseDatabaseUrl(text);
  return url.ok && isFile(text) ? err('is a file: give the URL of a libSQL server that follows SVC_DATABASE_URL') : url;
}

function isFile(databaseUrl: string | undefined): boolean {
  return databaseUrl === undefined || databaseUrl.startsWith('file:');
}

const REPLICA_OF_FILE: SettingProblem = {
  name: 'SVC_DATABASE_REPLICA_URL',
  message: 'SVC_DATABASE_REPLICA_URL needs SVC_DATABASE_URL to be the server that it follows: a file has no replica',
};

const PREVIOUS_KEY_ALONE: SettingProblem = {
  name: 'SVC_VAULT_KEY_PREVIOUS',
  message: 'SVC_VAULT_KEY_PREVIOUS is only the old key: set SVC_VAULT_KEY to the new one too',
};

/** The origin of a control plane. Plain http would reveal the caller's key to the network, so it is allowed only for loopback. */
export function parseControlUrl(text: string): Result<string, string> {
  const url = tryUrl(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return err(`is ${JSON.stringify(text)}: use a URL such as https://control.example.com`);
  }
  if (url.username !== '' || url.password !== '') return err('contains a user or a password: give only the origin');
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    return err(`is ${JSON.stringify(text)}: give only the origin, ${JSON.stringify(url.origin)}`);
  }
  if (url.protocol === 'http:' && !isLoopbackHostname(url.hostname)) {
    return err(`is ${JSON.stringify(text)}: use https:// (http is only for 127.0.0.1, localhost and [::1])`);
  }
  return ok(url.origin);
}

/** The address of an MCP registry: an origin and an optional path. */
export function parseRegistryUrl(text: string): Result<string, string> {
  const url = tryUrl(text);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return err(`is ${JSON.stringify(text)}: use a URL such as https://registry.example.com`);
  }
  if (url.username !== '' || url.password !== '') return err('contains a user or a password: give only the URL');
  if (url.search !== '' || url.hash !== '')
    return err(`is ${JSON.stringify(text)}: leave out everything after the path`);
  if (url.protocol === 'http:' && !isLoopbackHostname(url.hostname)) {
    return err(`is ${JSON.stringify(text)}: use https:// (http is only for 127.0.0.1, localhost and [::1])`);
  }
  return ok(url.origin + url.pathname.replace(/\/+$/, ''));
}

/** A client id that is a URL has a path and no fragment (OAuth Client ID Metadata Document, section 3). */
function parseClientDocumentUrl(text: string): Result<string, string> {
  const url = tryUrl(text);
  const isPlain = url?.protocol === 'https:' && url.username === '' && url.password === '' && url.hash === '';
  if (url !== null && isPlain && url.pathname !== '/' && url.href === text) return ok(text);
  return err(`is ${JSON.stringify(text)}: use the https URL of a document, such as https://example.com/client.json`);
}

function tryUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}
