import { type SdkEndpoint, sdkVariables, unclaimedEndpoints } from '../../shared/net/sdk_endpoints.ts';
import { isReadByEngine } from '../engine/engine_cli.ts';
import { CA_VARIABLES, isStripped, mayHoldSentinel, NOT_PROXIED, proxyUrlFor } from './session_environment.ts';

/** The ports of the sidecar and of its relay inside the container's network. */
export const LISTENER_PORT = 7421;
const RELAY_PORT = 7422;

/** A session as a container needs to know it. */
export interface ContainerSession {
  readonly sessionId: string;
  /** Null for a container that gets no token of its own (a plan's). */
  readonly token: string | null;
  /** As the container reaches it, with or without user info. */
  readonly proxyUrl: string;
  readonly listener: 'namespace' | 'gateway';
  readonly sentinels: readonly { readonly env: string; readonly value: string }[];
  readonly relay: boolean;
  readonly sdkEndpoints?: readonly SdkEndpoint[];
  /** The entries of the user's NO_PROXY that cover no bound host, for a container with a network of its own. */
  readonly exempt?: readonly string[];
}

/**
 * Variables that would affect the programs that the container runs as root before it switches to the agent's user. They may
 * name a file in a mount that an agent can write.
 */
const HEEDED_BY_THE_START =
  /^(PATH|IFS|ENV|BASH_ENV|BASH_FUNC.*|BASHOPTS|SHELLOPTS|PS4|LD_.*|GCONV_PATH|LOCPATH|OPENSSL_.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS)$/;

/** Why a variable may not be set by `--env` or `--unsealed`; null when it may. */
export function variableProblem(name: string): string | null {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    return 'is not the name of an environment variable: letters, digits and "_", not beginning with a digit';
  }
  if (isReadByEngine(name)) return 'is read by the engine itself: set it in the image';
  if (isStripped(name) || CA_VARIABLES.some((known) => known === name)) {
    return 'is set by svc for the proxy: leave it out';
  }
  if (HEEDED_BY_THE_START.test(name)) {
    return `would be heeded by the container's start as root: set it for your command alone, -- env ${name}=VALUE COMMAND`;
  }
  return null;
}

/**
 * The environment of a container in proxy mode (design section 9). The variables that name certificates are set inside, by
 * the helper that makes the bundle.
 */
export function containerEnvironment(
  session: ContainerSession,
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  const origin = new URL(session.proxyUrl).origin;
  const notProxied = [NOT_PROXIED, ...(session.exempt ?? [])].join(',');
  const placeholders = session.sentinels.filter(({ env }) => mayHoldSentinel(env) && !isReadByEngine(env));
  return {
    ...sdkVariablesOf(session, given),
    ...given,
    ...Object.fromEntries(placeholders.map(({ env, value }) => [env, value])),
    ...(session.token === null ? {} : tokenVariables(session, session.token)),
    ...(session.relay ? relayVariables() : {}),
    ...(session.listener === 'namespace' ? { SVC_PROXY_WAIT: `127.0.0.1:${LISTENER_PORT}` } : {}),
    NO_PROXY: notProxied,
    no_proxy: notProxied,
    NODE_USE_ENV_PROXY: '1',
    GIT_HTTP_PROXY_AUTHMETHOD: 'basic',
    ...('GIT_CONFIG_COUNT' in given ? {} : OWN_REPOSITORIES),
    SVC_SESSION_ID: session.sessionId,
    SVC_URL: origin,
  };
}

/**
 * None beside an endpoint that the caller gives for the same SDK: the session's token would be sent there. At a bridge's gateway
 * a listener serves all sessions, so Google's libraries, which send no token, have none.
 */
function sdkVariablesOf(
  { token, proxyUrl, listener, sdkEndpoints = [] }: ContainerSession,
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (token === null) return {};
  const { origin, host } = new URL(proxyUrl);
  const metadataHost = listener === 'namespace' ? host : null;
  return sdkVariables(unclaimedEndpoints(sdkEndpoints, given), { origin, token, metadataHost });
}

/** Mounted files belong to a user of the host, and git refuses repositories of another user. */
const OWN_REPOSITORIES = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' };

function tokenVariables(session: ContainerSession, token: string): Record<string, string> {
  const url = proxyUrlFor(session.proxyUrl, session.sessionId, token);
  return { HTTPS_PROXY: url, https_proxy: url, HTTP_PROXY: url, http_proxy: url, SVC_TOKEN: token };
}

/** JVMs and Chromium send no proxy credentials; the relay in the container's own network asks for none. */
function relayVariables(): Record<string, string> {
  const url = `http://127.0.0.1:${RELAY_PORT}`;
  const properties = {
    'https.proxyHost': '127.0.0.1',
    'https.proxyPort': String(RELAY_PORT),
    'http.proxyHost': '127.0.0.1',
    'http.proxyPort': String(RELAY_PORT),
    'http.nonProxyHosts': 'localhost|127.*|[::1]',
  };
  return {
    SVC_RELAY_URL: url,
    SVC_CHROMIUM_FLAGS: `--proxy-server=${url}`,
    JAVA_TOOL_OPTIONS: Object.entries(properties)
      .map(([name, value]) => `-D${name}=${value}`)
      .join(' '),
  };
}
