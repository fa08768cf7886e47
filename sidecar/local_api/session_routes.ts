import type { AllowList } from '../../shared/model/egress.ts';
import { toRequestLimits } from '../../shared/model/request_limits.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { PENDING_LOGIN_SECONDS } from '../../shared/wire/pending_logins.ts';
import type { PlanLockPayload } from '../../shared/wire/plan/plan_lock.ts';
import { errorCode, SYSTEM_REASONS } from '../../shared/model/error_code.ts';
import { HTTPS_PORT, portOfHost } from '../../shared/net/host_port.ts';
import { allowedHosts, allowsHost, listAdmitted } from '../../shared/resolve/admitted_host.ts';
import { parseVaultReference } from '../../shared/model/vault_path.ts';
import { isScoped, type SecretScope } from '../../shared/wire/sources/narrowing.ts';
import type { AccountChoice, ChosenSecret } from '../../shared/model/account_choice.ts';
import { chooseAccounts } from '../../shared/resolve/account_choice.ts';
import type { SessionListener } from '../reach/session_listeners.ts';
import { pauseEvent } from '../exchange/masked_replies.ts';
import { isRunning } from '../../machine/process_identity.ts';
import type { AuditSink, ServedServer } from '../ports.ts';
import type { Sandbox } from '../session/sandbox.ts';
import { CapturedLogin } from '../session/session_login.ts';
import type { Session } from '../session/session.ts';
import type { CreatedSession, NewSession } from '../session/sessions.ts';
import type { SessionInput } from './inputs.ts';
import { FLUSH_MS, type LocalApiOptions } from './local_api_options.ts';
import { auditUnavailableError, localError, type LocalError, noSessionError } from './local_error.ts';
import { findNamedMcpServers } from './named_mcp_servers.ts';
import type { SdkEndpoint } from '../../shared/net/sdk_endpoints.ts';
import { awsPlaceholder } from './aws_placeholder.ts';
import { type BearerCloud, type BearerPlaceholder, bearerPlaceholder } from './bearer_placeholder.ts';
import { mintScopes } from './mint_scopes.ts';
import { sentinelsOf } from './sentinels.ts';
import { sessionRecord } from './session_record.ts';

/** How long creating a session waits for the policy. */
const POLICY_WAIT_MS = 10_000;

/** Waits for the policy, then creates the session with its CA and bundle. */
export async function createSession(
  options: LocalApiOptions,
  input: SessionInput,
): Promise<Result<object, LocalError>> {
  const { policy, sessions } = options;
  const reached = await policy.waitForVersion(input.min_policy_version ?? 0, POLICY_WAIT_MS);
  if (!reached.ok) return err(localError(reached.error.reason, reached.error.message));
  const wanted = await checkSession(options, input);
  if (!wanted.ok) return wanted;
  // A credential that is passed on is always recorded, or there is no session.
  if (input.kept_env.length > 0 && !options.audit.accepting) return err(auditUnavailableError());
  try {
    const created = await sessions.create(wanted.value.session);
    const opened = await options.listeners.openSocket(created.session);
    if (!opened.ok) {
      await sessions.end(created.session.id);
      return err(localError(opened.error.reason, opened.error.message));
    }
    const scoped = await mintScopes(options, created.session);
    if (!scoped.ok) {
      await sessions.end(created.session.id);
      return scoped;
    }
    for (const kept of input.kept_env) options.audit.record(keptEvent(created.session.id, kept));
    recordReach(options, created.session);
    return ok(formatCreated(options, created, wanted.value.listener));
  } catch (error) {
    const code = errorCode(error);
    const reason = SYSTEM_REASONS[code] === undefined ? '' : `: ${SYSTEM_REASONS[code]}`;
    const cause = `${reason}${code === '' ? '' : ` (${code})`}`;
    return err(
      localError('session_ca_unavailable', `The session's CA could not be created${cause}. Check the state directory.`),
    );
  }
}

/** An event has at most this many hosts. */
const MOST_HOSTS = 1_000;

/** Records what a session that may reach only some hosts could reach at its start. The steps of a plan have events of their own. */
function recordReach({ audit, credentials, policy }: LocalApiOptions, session: Session): void {
  const { allowed, allowList, plainHttpList, otherPortsList, lock, egress, id, mcpServer } = session;
  const current = policy.current();
  if (allowed === null || lock !== null) return;
  const plain = [...(plainHttpList?.hosts ?? []), ...(plainHttpList?.named ?? [])].map((host) => `http://${host}`);
  const others = [...(otherPortsList?.hosts ?? []), ...(otherPortsList?.named ?? [])];
  const listed = [...(allowList?.hosts ?? []), ...(allowList?.named ?? []), ...plain, ...others];
  const hosts =
    current.ok && mcpServer === null
      ? listAdmitted(current.value, policy.bindings(), (ref) => credentials.isStored(ref), listed)
      : listed.toSorted();
  const left = hosts.length - MOST_HOSTS;
  audit.record({
    type: 'sandbox.proxy.session_reach',
    session_id: id,
    actor: 'session',
    data: {
      'svc.reach.hosts': left > 0 ? [...hosts.slice(0, MOST_HOSTS - 1), `… and ${left + 1} more`] : hosts,
      'svc.reach.enforced': true,
      'svc.reach.egress': egress === null ? 'open' : 'sealed',
    },
  });
}

/** A person let the session's command inherit a credential in plaintext. */
function keptEvent(
  sessionId: string,
  { env, reference }: SessionInput['kept_env'][number],
): Parameters<AuditSink['record']>[0] {
  return {
    type: 'sandbox.proxy.credential_unsealed',
    session_id: sessionId,
    actor: 'session',
    data: {
      ...(reference !== undefined && { 'svc.proxy.credential_ref': reference }),
      'svc.proxy.reason': `kept in the environment: ${env}`,
    },
  };
}

interface CheckedSession {
  readonly session: NewSession;
  /** The proxy's address for its container; null without one. */
  readonly listener: SessionListener | null;
}

/** Checks the parts of the request: the owner process lives, the lock is signed by this sidecar, the container can reach the proxy. */
async function checkSession(
  options: LocalApiOptions,
  input: SessionInput,
): Promise<Result<CheckedSession, LocalError>> {
  const { name = null, owner = null } = input;
  if (owner !== null && !isRunning(owner)) {
    return err(localError('invalid_input', 'owner: no such process runs, so the session would end at once'));
  }
  if (input.self_test === true && reachesSomething(input)) {
    const message = 'self_test: it reaches nothing, so it has no sandbox, plan, hosts, MCP servers or kept credentials';
    return err(localError('invalid_input', message));
  }
  const misplaced = whyNoHostSandbox(input);
  if (misplaced !== null) return err(localError('invalid_input', `host_sandbox: ${misplaced}`));
  const sandbox = input.sandbox === undefined ? null : sandboxOf(input.sandbox);
  const allowList = allowListOf(input);
  if (!allowList.ok) return allowList;
  const plainHttp = plainHttpOf(input);
  if (!plainHttp.ok) return plainHttp;
  const otherPorts = otherPortsOf(input);
  if (!otherPorts.ok) return otherPorts;
  const unreachable = unreachableCredential(options, input, allowList.value);
  if (unreachable !== null) return err(unreachable);
  const lock = await verifyLock(options, input, sandbox);
  if (!lock.ok) return lock;
  const mcpServers = mcpServersOf(options, input);
  if (!mcpServers.ok) return mcpServers;
  const choice = choiceOf(options, input);
  if (!choice.ok) return choice;
  const scopes = scopesOf(input);
  if (!scopes.ok) return scopes;
  const login = await loginOf(options, input);
  if (!login.ok) return login;
  const served = servedServerOf(options, input);
  if (!served.ok) return served;
  const listener = sandbox === null ? ok(null) : await options.listeners.planFor(sandbox);
  if (!listener.ok) return err(localError(listener.error.reason, listener.error.message));
  const unsealed = input.sandbox?.unsealed ?? [];
  const selfTest = input.self_test === true;
  const session = { name, ttlSeconds: secondsOf(options, input, login.value), owner, sandbox, unsealed, selfTest };
  const lists = {
    allowList: served.value?.allowList ?? allowList.value,
    plainHttp: plainHttp.value,
    otherPorts: otherPorts.value,
  };
  const parts = {
    ...lists,
    folder: input.folder ?? null,
    scopes: scopes.value,
    limits: toRequestLimits(input),
    hostSandbox: input.host_sandbox ?? null,
    mcpServer: served.value?.mcpServer ?? null,
    mcpServers: mcpServers.value,
    lock: lock.value,
    login: login.value,
  };
  return ok({ session: { ...session, ...parts, choice: choice.value }, listener: listener.value });
}

/** Why the session cannot have a sandbox of its launcher's; null if it can, or asks for none. */
function whyNoHostSandbox({ host_sandbox: asked, sandbox, plan, owner }: SessionInput): string | null {
  if (asked === undefined) return null;
  if (sandbox !== undefined || plan !== undefined) return 'the session has a container';
  return owner === undefined ? 'needs an owner, with whose end it ends' : null;
}

interface ServedContainer {
  readonly mcpServer: ServedServer;
  readonly allowList: AllowList;
}

/** The server that the session's container or sandbox runs. Its hosts come from the consent on this machine, never from the caller. */
function servedServerOf({ mcp }: LocalApiOptions, input: SessionInput): Result<ServedContainer | null, LocalError> {
  const { mcp_server: id, sandbox, host_sandbox: hostSandbox, ...rest } = input;
  if (id === undefined) return ok(null);
  const isSealed = (sandbox ?? hostSandbox)?.egress === 'sealed';
  const isMore = sandbox?.detached === true || (sandbox?.unsealed ?? []).length > 0 || reachesSomething(rest);
  if (!isSealed || isMore) {
    return err(localError('invalid_input', 'mcp_server: needs a sealed sandbox of its own, and nothing else'));
  }
  const known = mcp?.directory.find(id) ?? null;
  if (mcp === undefined || known === null) return err(localError('not_found', `mcp_server: there is no ${id}`));
  const { server, consent, allowedHosts: hosts } = known;
  if (consent !== 'given') return err(localError('consent_needed', `The server ${server.name} has no consent here.`));
  if (hosts === null) return err(localError('conflict', `The consent to ${server.name} closes no network.`));
  const noteRefused = (host: string): void => {
    mcp.refused.note(id, host);
    mcp.healthChanged();
  };
  return ok({ mcpServer: { id, name: server.name, noteRefused }, allowList: { hosts, named: [] } });
}

/** The session of a login ends with the login at the latest. */
function secondsOf(
  { clock }: LocalApiOptions,
  { ttl_seconds: wanted }: SessionInput,
  login: CapturedLogin | null,
): number | null {
  if (login === null) return wanted ?? null;
  // The clocks of the two machines may differ, so the time left has an upper bound of its own.
  const left = Math.max(1, Math.min(PENDING_LOGIN_SECONDS, Math.floor((login.expiresAt - clock.now()) / 1000)));
  return Math.min(wanted ?? left, left);
}

/** The login that the session is started for. It is one of a program that a person runs here, and the session ends with it. */
async function loginOf(
  { logins, sessions }: LocalApiOptions,
  { login, owner, sandbox, host_sandbox: hostSandbox, plan }: SessionInput,
): Promise<Result<CapturedLogin | null, LocalError>> {
  if (login === undefined) return ok(null);
  if (owner === undefined || (sandbox ?? hostSandbox) !== undefined || plan !== undefined) {
    return err(localError('invalid_input', 'login: needs an owner, and no sandbox and no plan'));
  }
  const open = await logins.fetchLogin(login.id);
  if (open.ok && !sessions.takeLogin(login.id)) {
    return err(localError('conflict', `login: another session was started for ${login.id}`));
  }
  if (open.ok) return ok(new CapturedLogin(open.value, login.placeholder, logins));
  if (open.error.status === 404) return err(localError('not_found', `login: ${login.id} is not open`));
  return err(localError('control_plane_unavailable', `login: ${open.error.message}`));
}

function reachesSomething({
  sandbox,
  host_sandbox,
  plan,
  allowed_hosts,
  named_hosts,
  plain_http_hosts,
  plain_http_named,
  other_port_hosts,
  other_port_named,
  mcp_servers,
  every_mcp_server,
  kept_env,
  use_secrets,
  scopes,
}: SessionInput): boolean {
  const lists = [allowed_hosts, named_hosts, plain_http_hosts, plain_http_named, other_port_hosts, other_port_named];
  const given = [sandbox, host_sandbox, plan, every_mcp_server, ...lists].some((each) => each !== undefined);
  return given || [mcp_servers, kept_env, use_secrets, scopes].some((each) => each.length > 0);
}

/**
 * The list of a sealed session, or of a run that reaches only the hosts that its person allowed; null if it has none. With
 * `sealed,public` it only names hosts, which then may be private.
 */
function allowListOf({
  plan,
  sandbox,
  host_sandbox: hostSandbox,
  ...input
}: SessionInput): Result<AllowList | null, LocalError> {
  const egress = sandbox?.egress ?? hostSandbox?.egress;
  const { allowed_hosts: hosts, named_hosts: named } = input;
  if (plan !== undefined && egress === 'sealed,public') {
    const message = "sandbox.egress: a plan's steps reach exactly the hosts of their lock: use sealed or open";
    return err(localError('invalid_input', message));
  }
  if (hosts === undefined && named === undefined) return ok(null);
  if (plan !== undefined) {
    const message = "allowed_hosts: a plan's steps reach exactly the hosts of their lock: add the host to the plan";
    return err(localError('invalid_input', message));
  }
  if (egress === 'sealed,public' && named !== undefined && named.length > 0 && (hosts ?? []).length === 0) {
    return ok({ hosts: [], named });
  }
  if (egress !== undefined && egress !== 'sealed') {
    return err(localError('invalid_input', `allowed_hosts: with egress ${egress} every host can be reached`));
  }
  return ok({ hosts: hosts ?? [], named: named ?? [] });
}

/** The hosts for plain HTTP; null if there are none. */
function plainHttpOf({
  plan,
  plain_http_hosts: hosts,
  plain_http_named: named,
}: SessionInput): Result<AllowList | null, LocalError> {
  if (hosts === undefined && named === undefined) return ok(null);
  if (plan !== undefined) {
    return err(localError('invalid_input', "plain_http_hosts: a plan's steps send nothing over plain http"));
  }
  const ported = [...(hosts ?? []), ...(named ?? [])].find((host) => portOfHost(host) !== HTTPS_PORT);
  if (ported === undefined) return ok({ hosts: hosts ?? [], named: named ?? [] });
  return err(localError('invalid_input', `plain_http_hosts: ${ported} has a port: plain http goes to port 80 only`));
}

/** The hosts at other ports than 443; null if there are none. */
function otherPortsOf({
  plan,
  other_port_hosts: hosts,
  other_port_named: named,
}: SessionInput): Result<AllowList | null, LocalError> {
  if (hosts === undefined && named === undefined) return ok(null);
  if (plan !== undefined) {
    const message = "other_port_hosts: a plan's steps reach exactly the hosts of their lock: add the host to the plan";
    return err(localError('invalid_input', message));
  }
  const portless = [...(hosts ?? []), ...(named ?? [])].find((host) => portOfHost(host) === HTTPS_PORT);
  if (portless === undefined) return ok({ hosts: hosts ?? [], named: named ?? [] });
  return err(localError('invalid_input', `other_port_hosts: ${portless} is on port 443: name another port, HOST:PORT`));
}

/** A credential in plaintext for a host that the sealed container cannot reach would be handed out for nothing. */
function unreachableCredential(
  { policy }: LocalApiOptions,
  { sandbox }: SessionInput,
  list: AllowList | null,
): LocalError | null {
  const current = policy.current();
  if (sandbox?.egress !== 'sealed' || !current.ok) return null;
  const allowed = allowedHosts(list?.hosts ?? [], list?.named ?? []);
  const far = sandbox.unsealed.find(
    ({ host }) =>
      !allowsHost(allowed, host) &&
      current.value.bindingsFor(host).length === 0 &&
      !current.value.connectors.hosts.has(host),
  );
  if (far === undefined) return null;
  const message = `sandbox.unsealed: ${far.env} is for ${far.host}, which is neither bound nor allowed: allow it with --allow ${far.host}`;
  return localError('invalid_input', message);
}

/** Which account the session uses where a host has several, by the policy of its start. */
function choiceOf(
  { policy }: LocalApiOptions,
  { use_secrets: wanted, plan }: SessionInput,
): Result<AccountChoice | null, LocalError> {
  if (wanted.length > 0 && plan !== undefined) {
    return err(
      localError('invalid_input', 'use_secrets: a step of a plan names the account that it uses as its credential'),
    );
  }
  const secrets: ChosenSecret[] = [];
  for (const { reference, by, from } of wanted) {
    const path = parseVaultReference(reference);
    if (!path.ok) return err(localError('invalid_input', `use_secrets: ${path.error.message}`));
    secrets.push({ path: path.value, by, from });
  }
  const choice = chooseAccounts(secrets, policy.bindings());
  return choice.ok ? choice : err(localError('invalid_input', `use_secrets: ${choice.error}`));
}

/** What the session does less with some secrets. A program that has the plaintext of one could do all that its source allows. */
function scopesOf({ scopes, plan, sandbox }: SessionInput): Result<readonly SecretScope[], LocalError> {
  if (scopes.length > 0 && plan !== undefined) {
    return err(localError('invalid_input', 'scopes: a plan names those of its steps itself, as trust.scopes'));
  }
  const known = new Map<string, SecretScope>();
  for (const { reference, narrowing } of scopes) {
    const path = parseVaultReference(reference);
    if (!path.ok) return err(localError('invalid_input', `scopes: ${path.error.message}`));
    if (known.has(path.value)) return err(localError('invalid_input', `scopes: ${reference} is there twice`));
    known.set(path.value, { path: path.value, narrowing });
  }
  const plain = (sandbox?.unsealed ?? []).find(({ reference }) => isScoped([...known.values()], reference));
  if (plain === undefined) return ok([...known.values()]);
  return err(localError('invalid_input', `scopes: ${plain.reference} is narrowed, so no program gets its value`));
}

async function verifyLock(
  { planLocks }: LocalApiOptions,
  { plan, sandbox: asked }: SessionInput,
  sandbox: Sandbox | null,
): Promise<Result<PlanLockPayload | null, LocalError>> {
  if (plan === undefined) return ok(null);
  if (sandbox === null) {
    return err(localError('invalid_input', 'plan: a plan runs in a container; name it in sandbox'));
  }
  if ((asked?.unsealed.length ?? 0) > 0) {
    return err(localError('invalid_input', "sandbox.unsealed: a plan's container starts without any credential"));
  }
  const lock = await planLocks.verify(plan.lock);
  if (!lock.ok) return err(localError(lock.error.reason, lock.error.message));
  const pinned = lock.value.image.id;
  if (sandbox.imageId === pinned) return ok(lock.value);
  const message = `The plan's lock pins the image ${pinned}, and the container's is ${sandbox.imageId}. Review the image, then freeze the plan again with: svc plan freeze`;
  return err(localError('plan_lock_invalid', message));
}

function mcpServersOf(
  { policy }: LocalApiOptions,
  { mcp_servers: wanted, every_mcp_server: isEvery, host_sandbox: hostSandbox, plan }: SessionInput,
): Result<readonly string[] | null, LocalError> {
  if (isEvery === true) {
    if (hostSandbox !== undefined && wanted.length === 0) return ok(null);
    return err(localError('invalid_input', 'every_mcp_server: needs host_sandbox, and no mcp_servers'));
  }
  if (wanted.length === 0) return ok([]);
  if (plan !== undefined) {
    return err(localError('invalid_input', "mcp_servers: a plan's session has no token to use them with"));
  }
  const servers = policy.mcpServers();
  if (servers === null) return err(localError('control_plane_unavailable', 'mcp_servers: they are not known yet'));
  const known = servers.map(({ server }) => server);
  const ids = findNamedMcpServers(wanted, known);
  return ids.ok ? ids : err(localError('invalid_input', `mcp_servers: ${ids.error}`));
}

function sandboxOf(input: NonNullable<SessionInput['sandbox']>): Sandbox {
  const { mode, image, image_id: imageId, runtime, detached, egress } = input;
  return { mode, image, imageId, runtime, detached, egress };
}

/**
 * `DELETE /v1/sandbox-proxy/sessions/{id}`: ends a session. If the control plane is reachable, it has the session's events when this resolves. If asked for, gives the
 * reasons of these events, each once, or nothing if they are not known.
 */
export async function endSession(
  options: LocalApiOptions,
  sessionId: string,
  { withReasons }: { readonly withReasons: boolean },
): Promise<Result<{ readonly reasons: readonly string[] } | void, LocalError>> {
  // Held from before the end: an ended session is not found any more, and its last events come while it ends.
  const session = options.sessions.find(sessionId);
  const ended = await options.sessions.end(sessionId);
  if (!ended) return err(noSessionError(sessionId));
  await options.audit.flush(FLUSH_MS);
  const reasons = session?.reasons ?? null;
  return ok(!withReasons || reasons === null ? undefined : { reasons: [...reasons].toSorted() });
}

/** `GET /v1/sandbox-proxy/sessions`: live ones, and ended ones whose container still exists. MCP servers have a list of their own. */
export function listSessions(options: LocalApiOptions): object {
  const { sessions } = options;
  const items = [...sessions.list(), ...sessions.listKept()].filter(({ mcpServer }) => mcpServer === null);
  return { items: items.map((session) => sessionRecord(session, options)), next_cursor: null };
}

export function showSession(options: LocalApiOptions, sessionId: string): Result<object, LocalError> {
  const session = options.sessions.find(sessionId);
  return session === null ? err(noSessionError(sessionId)) : ok(sessionRecord(session, options));
}

/** `POST /v1/sandbox-proxy/sessions/{id}/resume`: resumes the session's paused bindings; records each. */
export function resumeSession(options: LocalApiOptions, sessionId: string): Result<object, LocalError> {
  if (options.sessions.get(sessionId) === null) return err(noSessionError(sessionId));
  const resumed = options.masked.resume(sessionId);
  for (const host of resumed) options.audit.record(pauseEvent('resumed', sessionId, host));
  return ok({ resumed });
}

function formatCreated(
  options: LocalApiOptions,
  { session, token }: CreatedSession,
  listener: SessionListener | null,
): object {
  const origin = listener === null ? options.proxyOrigin() : originOf(listener);
  const sdkEndpoints = token === null ? [] : sdkEndpointsOf(options, session);
  return {
    session_id: session.id,
    ...(token !== null && { token }),
    expires_at: new Date(session.expiresAt).toISOString(),
    proxy_url: token === null ? origin : proxyUrl(origin, session.id, token),
    ca_pem_path: session.caPemPath,
    ca_bundle_path: session.caBundlePath,
    sentinels: sentinelsOf(reachableBindings(options, session), session.choice),
    ...(listener !== null && { listener: listener.listener, listener_port: listener.port }),
    // An earlier CLI does not know the field.
    ...(sdkEndpoints.length > 0 && { sdk_endpoints: sdkEndpoints }),
  };
}

function sdkEndpointsOf(options: LocalApiOptions, session: Session): readonly SdkEndpoint[] {
  const clouds = (['google', 'azure'] as const).filter(
    (cloud) => bearerPlaceholderFor(options, session, cloud) !== null,
  );
  return awsPlaceholderFor(options, session) === null ? clouds : ['aws', ...clouds];
}

/** The placeholder keys of AWS for a session; null if no binding that it may use signs. */
export function awsPlaceholderFor(options: LocalApiOptions, session: Session): ReturnType<typeof awsPlaceholder> {
  return awsPlaceholder(reachableBindings(options, session), session, options.clock.now());
}

/** The placeholder token of a cloud for a session; null if no binding that it may use has one. `host`: what it is asked for. */
export function bearerPlaceholderFor(
  options: LocalApiOptions,
  session: Session,
  cloud: BearerCloud,
  host: string | null = null,
): BearerPlaceholder | null {
  const { choice, expiresAt } = session;
  const wanted = { choice, expiresAt, host };
  return bearerPlaceholder(cloud, reachableBindings(options, session), wanted, options.clock.now());
}

/** A server learns only of bindings whose host it may reach. */
function reachableBindings(
  { policy }: LocalApiOptions,
  { mcpServer, allowList }: Session,
): ReturnType<LocalApiOptions['policy']['bindings']> {
  const hosts = allowList?.hosts ?? [];
  return mcpServer === null
    ? policy.bindings()
    : policy.bindings().filter(({ host }) => hosts.some((allowed) => doPatternsMeet(allowed, host)));
}

/** Whether one of the patterns is the other, or covers it. */
function doPatternsMeet(first: string, second: string): boolean {
  return (
    first === second || allowsHost(allowedHosts([first], []), second) || allowsHost(allowedHosts([second], []), first)
  );
}

function originOf({ address, port }: SessionListener): string {
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** `http://<session_id>:<daemon_token>@<daemon_host>` (specification section 1, Sandbox launch). */
function proxyUrl(origin: string, sessionId: string, token: string): string {
  const url = new URL(origin);
  return `${url.protocol}//${sessionId}:${token}@${url.host}`;
}
