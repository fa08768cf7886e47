import { SDK_ENDPOINTS } from '../../shared/net/sdk_endpoints.ts';
import type { MeReply } from '../../shared/wire/account.ts';
import { formatVaultReference, parseVaultReference } from '../../shared/model/vault_path.ts';
import { identify, type ProcessIdentity } from '../../machine/process_identity.ts';
import { proxyUrlFor, type SessionAccess } from '../../sandbox/launch/session_environment.ts';
import { controlClient, sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { isListOf, isObjectOf, isText, isTextList, isWholeNumber, orMissing, replyOf } from '../read_fields.ts';
import { allowListFields, otherPortsFields } from './hosts/allowed_hosts.ts';
import { plainHttpFields } from './hosts/plain_http_option.ts';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import type { AllowList } from '../../shared/model/egress.ts';
import type { RequestLimits } from '../../shared/model/host_binding.ts';
import type { SecretScope } from '../../shared/wire/sources/narrowing.ts';
import { endSession } from './end_session.ts';
import { toLimitFields } from '../../shared/model/request_limits.ts';
import { scopesField } from './scope_option.ts';
import { CliError, EXIT, isUnreachable } from '../exit_codes.ts';
import type { HostSandboxField } from '../sandbox/host_sandbox.ts';

/** Reply of `POST /v1/sandbox-proxy/sessions` of the sidecar's local API. */
interface SessionReply {
  readonly session_id: string;
  readonly token: string;
  readonly proxy_url: string;
  readonly ca_bundle_path: string;
  readonly sentinels: readonly { readonly env: string; readonly value: string }[];
  /** An earlier sidecar has none, and a later one may have more. */
  readonly sdk_endpoints?: readonly string[] | undefined;
}

const sessionReply = replyOf<SessionReply>({
  session_id: isText,
  token: isText,
  proxy_url: isText,
  ca_bundle_path: isText,
  sentinels: isListOf(isObjectOf({ env: isText, value: isText })),
  sdk_endpoints: orMissing(isTextList),
});

/** What a run needs of `GET /v1/me`. */
const meReply = replyOf<Pick<MeReply, 'policy_version'>>({ policy_version: isWholeNumber });

/** Creating a session waits for the newest policy. */
const SESSION_TIMEOUT_MS = 40_000;

/** A session that stays open until `end` is called. */
export interface OpenSession {
  readonly session: SessionAccess;
  /** Ends the session; only warns if that fails. Gives what {@link endSession} gives. */
  readonly end: () => Promise<readonly string[] | null>;
}

interface WantedSession {
  /** What {@link policyVersion} gave, if it was asked before. */
  readonly minPolicyVersion?: number | null;
  readonly name?: string;
  readonly ttlSeconds?: number;
  /** Those that its token may use; null: every one. */
  readonly mcpServers?: readonly string[] | null;
  /** The hosts that the proxy allows besides bound ones; without it, every host. */
  readonly allowList?: AllowList;
  /** The hosts that it may send plain requests to. */
  readonly plainHttp?: AllowList;
  /** Hosts at other ports than 443. */
  readonly otherPorts?: AllowList;
  /** It reaches nothing; see `SELF_TEST_HOST`. */
  readonly selfTest?: boolean;
  /** The secrets to use where a host is bound to several. */
  readonly secrets?: readonly ChosenSecret[];
  /** What it does less with minted secrets. */
  readonly scopes?: readonly SecretScope[];
  /** How many of its requests may get a credential. */
  readonly limits?: RequestLimits;
  /** The login that the session captures. */
  readonly login?: { readonly id: string; readonly placeholder: string };
  /** Its command has a sandbox of its own. */
  readonly hostSandbox?: HostSandboxField;
  /** Variables with a credential that the command inherits; each is recorded. */
  readonly keptEnv?: readonly { readonly name: string; readonly reference: string | null }[];
}

/** Opens a session whose policy includes every binding stored so far, or when the version of the policy was asked. */
export async function openSession(call: Call, wanted: WantedSession): Promise<OpenSession> {
  const sidecar = sidecarClient(call.context, call.options);
  const version = wanted.minPolicyVersion === undefined ? await policyVersion(call) : wanted.minPolicyVersion;
  const body = {
    ...(wanted.name !== undefined && { name: wanted.name }),
    folder: call.context.workingDirectory,
    ...(wanted.ttlSeconds !== undefined && { ttl_seconds: wanted.ttlSeconds }),
    ...(version !== null && { min_policy_version: version }),
    ...(wanted.mcpServers === null && { every_mcp_server: true }),
    ...(Array.isArray(wanted.mcpServers) && { mcp_servers: wanted.mcpServers }),
    ...(wanted.allowList !== undefined && allowListFields(wanted.allowList)),
    ...plainHttpFields(wanted.plainHttp),
    ...otherPortsFields(wanted.otherPorts),
    ...(wanted.selfTest === true && { self_test: true }),
    ...useSecretsField(wanted.secrets ?? []),
    ...scopesField(wanted.scopes),
    ...toLimitFields(wanted.limits),
    ...(wanted.login !== undefined && { login: wanted.login }),
    ...(wanted.hostSandbox !== undefined && { host_sandbox: wanted.hostSandbox }),
    ...(wanted.keptEnv !== undefined && { kept_env: wanted.keptEnv.map(keptRecord) }),
    // The session ends with that process, even if it is killed.
    owner: launcherOf(call),
  };
  const timeoutMs = SESSION_TIMEOUT_MS;
  const reply = await sidecar.call('POST', '/v1/sandbox-proxy/sessions', sessionReply, { body, timeoutMs });
  const session: SessionAccess = {
    sessionId: reply.session_id,
    proxyUrl: proxyUrlFor(reply.proxy_url, reply.session_id, reply.token),
    caBundlePath: reply.ca_bundle_path,
    sentinels: reply.sentinels,
    sdkEndpoints: SDK_ENDPOINTS.filter((sdk) => reply.sdk_endpoints?.includes(sdk) === true),
  };
  return { session, end: () => endSession(call, session.sessionId) };
}

/** The process that a session ends with: the one that waits for the end of its command. */
function launcherOf({ context }: Call): ProcessIdentity | null {
  const { waiter } = context;
  if (waiter === undefined) return identify(process.pid);
  const launcher = process.ppid === waiter.pid ? identify(waiter.pid) : null;
  if (launcher === null) throw new CliError(EXIT.notStarted, 'the shell that started svc has ended');
  return launcher;
}

/** The credential of a connector or an MCP server has a place that nobody else may refer to. */
function keptRecord({ name, reference }: { readonly name: string; readonly reference: string | null }): object {
  const isOwn = reference !== null && parseVaultReference(reference).ok;
  return { env: name, ...(isOwn && { reference }) };
}

/**
 * The minimum policy version for the session, so that a binding added just now applies. If the control plane is away, the
 * session uses the policy that the sidecar has. The signal ends the call early, which throws.
 */
export async function policyVersion(call: Call, signal?: AbortSignal): Promise<number | null> {
  // Its sidecar has just read the policy.
  if (call.options.withoutUser === true) return null;
  try {
    return (await controlClient(call.context, call.options).call('GET', '/v1/me', meReply, { signal })).policy_version;
  } catch (error) {
    if (!isUnreachable(error, signal)) throw error;
    call.print.warn(`${error.message}; using the policy that the sidecar has`);
    return null;
  }
}

/** The field of `POST /v1/sandbox-proxy/sessions`. An older sidecar refuses it, and does not run the session without its choice. */
export function useSecretsField(secrets: readonly ChosenSecret[]): object {
  if (secrets.length === 0) return {};
  return {
    use_secrets: secrets.map(({ path, by, from }) => ({
      reference: formatVaultReference(path),
      by,
      ...(from !== null && { from }),
    })),
  };
}
