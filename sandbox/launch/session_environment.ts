import { foreignSdkVariables, type SdkEndpoint, sdkVariables } from '../../shared/net/sdk_endpoints.ts';

/** The facts of a live session that a command needs to use the proxy. */
export interface SessionAccess {
  readonly sessionId: string;
  /** `http://<session_id>:<token>@<host>:<port>`: the user info makes clients send Proxy-Authorization. */
  readonly proxyUrl: string;
  /** PEM file: the system's roots and the session's CA. */
  readonly caBundlePath: string;
  /** Placeholders of sentinel-swap bindings, each with its variable. */
  readonly sentinels: readonly { readonly env: string; readonly value: string }[];
  /** The SDKs of clouds that get placeholder keys from the sidecar. */
  readonly sdkEndpoints?: readonly SdkEndpoint[];
  /** `host:port` of a listener for Google's libraries that answers this session alone. */
  readonly metadataHost?: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Every variable that a known client reads its roots from; each replaces or adds to the client's own. */
export const CA_VARIABLES = [
  'SSL_CERT_FILE',
  'NODE_EXTRA_CA_CERTS',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'PIP_CERT',
  'GIT_SSL_CAINFO',
  'AWS_CA_BUNDLE',
  'DENO_CERT',
  'CARGO_HTTP_CAINFO',
  'CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE',
  'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
  'CODEX_CA_CERTIFICATE',
  'HTTPLIB2_CA_CERTS',
  'PERL_LWP_SSL_CA_FILE',
  'BUNDLE_SSL_CA_CERT',
  'HEX_CACERTS_PATH',
  'NIX_SSL_CERT_FILE',
  'npm_config_cafile',
  'YARN_HTTPS_CA_FILE_PATH',
] as const;

const PROXY_VARIABLES = ['HTTPS_PROXY', 'HTTP_PROXY'] as const;
/** Loopback is not proxied: it is refused there (design section 5, invariant 7), and dev servers live on it. */
export const NOT_PROXIED = 'localhost,127.0.0.1,::1';

/**
 * Variables that a command must not inherit: svc's settings and keys, sign-in providers' secrets, npm's script variables, and
 * proxy or CA settings that would bypass the session.
 */
const OURS = [/^SVC_/i, /^(GENERAL|CODEHOST)_OAUTH_/i];
/** Variables of npm: facts about another package, its own proxy and TLS settings, and its credentials. */
const OF_NPM = [
  /^npm_(?:lifecycle|package)_/i,
  /^npm_(?:execpath|node_execpath|command|config_(?:user_agent|local_prefix|global_prefix))$/i,
  /^npm_config_(?:(?:https?[_-])?proxy|no[_-]?proxy|strict[_-]ssl|(?:.*:)?(?:ca|cafile|cert|certfile|key|keyfile))$/i,
  /^npm_config_.*(?:auth|token|password)/i,
];
const STRIPPED = [...OURS, ...OF_NPM, /^(INIT_CWD|NODE)$/, /^(HTTPS?|ALL|NO|FTP|WSS?)_PROXY$/i, /^SSL_CERT_DIR$/];

/** True if no command inherits this variable, because `svc` sets it or keeps it private. */
export function isStripped(name: string): boolean {
  return STRIPPED.some((pattern) => pattern.test(name));
}

/** Variables that decide which code a program loads: a binding's placeholder must not be put in them. */
const LOADS_CODE =
  /^(PATH|HOME|SHELL|IFS|ENV|BASH_ENV|BASH_FUNC.*|PROMPT_COMMAND|PS4|LD_.*|DYLD_.*|NODE_.*|PYTHON.*|PERL5?.*|RUBY.*|GEM_.*|JAVA_.*|JDK_.*|_JAVA_.*|GIT_.*|NPM_CONFIG_.*|EDITOR|VISUAL|PAGER|BROWSER|XDG_.*)$/i;

/** True if this variable may hold a placeholder. */
export function mayHoldSentinel(name: string): boolean {
  const taken = isStripped(name) || CA_VARIABLES.some((known) => known === name);
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !taken && !LOADS_CODE.test(name);
}

/** The environment of a command that runs without the proxy: as inherited, without our own settings and keys. */
export function environmentWithoutProxy(inherited: Environment): Record<string, string> {
  const kept = Object.entries(inherited).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(kept.filter(([name]) => !OURS.some((pattern) => pattern.test(name))));
}

/**
 * The environment of a command inside a session (design section 9). A real credential in a placeholder's variable is replaced.
 * `exempt`: the entries of the user's NO_PROXY that cover no bound host.
 */
export function sessionEnvironment(
  inherited: Environment,
  session: SessionAccess,
  exempt: readonly string[] = [],
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(inherited)) {
    if (value !== undefined && !isStripped(name)) environment[name] = value;
  }
  for (const { env, value } of session.sentinels) {
    if (mayHoldSentinel(env)) environment[env] = value;
  }
  const sdk = sdkVariablesOf(session);
  for (const name of foreignSdkVariables(sdk)) delete environment[name];
  return { ...environment, ...sdk, ...proxyVariables(session, exempt), ...caVariables(session.caBundlePath) };
}

function proxyVariables(session: SessionAccess, exempt: readonly string[]): Record<string, string> {
  const notProxied = [NOT_PROXIED, ...exempt].join(',');
  const variables: Record<string, string> = {
    NO_PROXY: notProxied,
    no_proxy: notProxied,
    // Node's fetch and https read the variables above only with this one.
    NODE_USE_ENV_PROXY: '1',
    // Otherwise git (libcurl) first sends no credentials, which costs a round trip for each connection.
    GIT_HTTP_PROXY_AUTHMETHOD: 'basic',
    SVC_SESSION_ID: session.sessionId,
    ...apiVariables(session.proxyUrl),
  };
  for (const name of PROXY_VARIABLES) {
    variables[name] = session.proxyUrl;
    variables[name.toLowerCase()] = session.proxyUrl;
  }
  return variables;
}

function sdkVariablesOf({
  proxyUrl,
  sdkEndpoints = [],
  metadataHost,
}: SessionAccess): Readonly<Record<string, string>> {
  const { origin, password } = new URL(proxyUrl);
  const token = decodeURIComponent(password);
  return sdkVariables(sdkEndpoints, { origin, token, metadataHost: metadataHost ?? null });
}

/** The sidecar's own API, such as `$SVC_URL/v1/mcp`. The token is the one in the proxy's URL. */
function apiVariables(proxyUrl: string): Record<string, string> {
  const { origin, password } = new URL(proxyUrl);
  return { SVC_URL: origin, SVC_TOKEN: decodeURIComponent(password) };
}

function caVariables(bundle: string): Record<string, string> {
  return Object.fromEntries(CA_VARIABLES.map((name) => [name, bundle]));
}

/** The proxy URL with the session's id and token as its user info. */
export function proxyUrlFor(proxyUrl: string, sessionId: string, token: string): string {
  const url = new URL(proxyUrl);
  url.username = sessionId;
  url.password = token;
  return url.href.replace(/\/$/, '');
}
