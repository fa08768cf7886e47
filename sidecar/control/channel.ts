import { APPROVAL_KNOWS_HEADER, APPROVAL_KNOWS_VIEWS } from '../../shared/wire/approval_views.ts';
import { randomBytes } from 'node:crypto';
import type { CredentialRef } from '../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { type AuditHead, MAX_KNOWN_HEADS, writeKnownHeads } from '../../shared/wire/audit_heads.ts';
import {
  SNAPSHOT_KNOWS_ALSO_HEADER,
  SNAPSHOT_KNOWS_BYTE_LIMITS,
  SNAPSHOT_KNOWS_CERTIFICATES,
  SNAPSHOT_KNOWS_HEADER,
  SNAPSHOT_KNOWS_INACTIVE,
  SNAPSHOT_KNOWS_OTHER_PORTS,
  SNAPSHOT_KNOWS_REGION_SETS,
  SNAPSHOT_KNOWS_TUNNELS,
  SNAPSHOT_KNOWS_TOOLS,
  SNAPSHOT_PROOF_HEADER,
} from '../../shared/wire/channel.ts';
import { errorBody, type ErrorBody } from '../../shared/wire/errors.ts';
import type { McpHealthReport } from '../../shared/wire/mcp/mcp_servers.ts';
import { type McpToolsReport, mcpToolsReported } from '../../shared/wire/mcp/mcp_tools.ts';
import type { Clock } from '../../shared/model/clock.ts';
import { callToken } from '../../machine/call_token.ts';
import { mayAskProvider } from './connector_reference.ts';
import { channelFailure, type ChannelFailure } from './channel_failure.ts';
import type {
  ApprovalAnswer,
  ApprovalCall,
  ApprovalWait,
  AskedCredential,
  SealedView,
  AuditHeads,
  CapturedTokens,
  ControlChannel,
  CredentialsReply,
  EventsOutcome,
  OpenLogin,
  SnapshotReply,
  SnapshotRequest,
  UnsealedRequest,
} from './control_channel.ts';
import type { HttpCall, HttpClient, HttpReply, HttpFailureReason } from '../../machine/http_call.ts';
import type { Identity } from '../../machine/sidecar_identity.ts';
import type { Link } from './link.ts';
import {
  isRevocation,
  openApproval,
  openCredentials,
  verifyAuditHeads,
  verifyConfirmation,
  verifyEventsOutcome,
  verifyHeldLogin,
  verifyOpenLogin,
  verifySnapshot,
} from './reply_verifier.ts';
import { sealLoginTokens } from './seal_login_tokens.ts';
import { parseJson } from '../../shared/model/json.ts';
import type { Failure } from '../../shared/model/failure.ts';

/** What this sidecar reads besides the first version's snapshot. */
const KNOWS_ALSO = [
  SNAPSHOT_KNOWS_TUNNELS,
  SNAPSHOT_KNOWS_OTHER_PORTS,
  SNAPSHOT_KNOWS_REGION_SETS,
  SNAPSHOT_KNOWS_BYTE_LIMITS,
  SNAPSHOT_KNOWS_TOOLS,
  SNAPSHOT_KNOWS_CERTIFICATES,
] as const;

interface ControlChannelOptions {
  readonly identity: Identity;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly link: Link;
  /** For a call that the control plane answers at once. */
  readonly timeoutMs?: number;
}

interface Answer {
  readonly reply: HttpReply;
  /** The call's id; the reply names it to prove that it is not an older one. */
  readonly nonce: string;
}

const DEFAULT_TIMEOUT_MS = 10_000;
/** The control plane may have to ask a provider for an access token or a minted value, and gives up on it before this time. */
export const PROVIDER_TIMEOUT_MS = 90_000;

/** The channel of an enrolled sidecar. Reports the outcome of every call to `link`. */
export function createControlChannel(options: ControlChannelOptions): ControlChannel {
  const { identity, link } = options;
  return {
    snapshot: (request) => reportTo(link, () => snapshotCall(options, request)),
    credentials: (refs) => reportTo(link, () => credentialsCall(options, refs), isFaultOfLink(refs)),
    fetchUnsealed: (request) => reportTo(link, () => callForUnsealed(options, request), isFaultForUnsealed),
    requestApproval: (call) => reportTo(link, () => approvalCall(options, call)),
    awaitApproval: (wait) => reportTo(link, () => approvalWait(options, wait)),
    // Not reported to the link: the page may have gone.
    sendView: (view) => viewCall(options, view),
    reportMcpHealth: (report) => reportTo(link, () => mcpHealthCall(options, report)),
    sendEvents: (events) => reportTo(link, () => eventsCall(options, events)),
    // Not reported to the link: an older control plane does not know these calls.
    reportMcpTools: (report) => mcpToolsCall(options, report),
    fetchLogin: (id) => fetchLoginCall(options, id),
    holdLogin: (login, tokens) => holdLoginCall(options, login, tokens),
    // Not reported to the link: an older control plane does not know the call.
    auditHeads: (known) => auditHeadsCall(options, known),
    verifyStored: (jws) => verifySnapshot(identity, jws, null),
    verifyStoredConfirmation: (jws) => verifyConfirmation(identity, jws, null),
  };
}

async function reportTo<T>(
  link: Link,
  call: () => Promise<Result<T, ChannelFailure>>,
  isFault = isFaultOfLink([]),
): Promise<Result<T, ChannelFailure>> {
  const known = link.revocations;
  const result = await call();
  if (result.ok) link.markUp(known);
  else if (isFault(result.error)) link.markDown(result.error);
  return result;
}

/** A slow provider, or an agent that asks for too much, is not a failure of the link to the control plane. */
function isFaultOfLink(refs: readonly AskedCredential[]): (error: ChannelFailure) => boolean {
  return ({ reason, code, status }) => {
    // An earlier control plane does not know the narrowing.
    if (status === 400 && refs.some(({ narrowing }) => narrowing !== undefined)) return false;
    if (reason === 'timeout') return !refs.some(mayTakeLong);
    return reason !== 'aborted' && code !== 'too_many_approvals';
  };
}

/** The value may be minted: its path does not say so. */
function isFaultForUnsealed({ reason, code }: ChannelFailure): boolean {
  return reason !== 'timeout' && code !== 'credential_unavailable';
}

async function snapshotCall(
  options: ControlChannelOptions,
  request: SnapshotRequest,
): Promise<Result<SnapshotReply, ChannelFailure>> {
  const headers = {
    [SNAPSHOT_KNOWS_HEADER]: SNAPSHOT_KNOWS_INACTIVE,
    [SNAPSHOT_KNOWS_ALSO_HEADER]: KNOWS_ALSO.join(', '),
    ...(request.heldVersion !== null && { 'if-none-match': `"${request.heldVersion}"` }),
  };
  const answer = await get(options, `/v1/sidecar/snapshot?wait=${request.waitSeconds}`, { ...request, headers });
  if (!answer.ok) return answer;
  const { reply, nonce } = answer.value;
  if (reply.status === 304) return confirmationReply(options, reply.header(SNAPSHOT_PROOF_HEADER) ?? '', nonce);
  const snapshot = await verifySnapshot(options.identity, reply.body, nonce);
  return snapshot.ok ? ok({ kind: 'snapshot', snapshot: snapshot.value, jws: reply.body }) : snapshot;
}

async function confirmationReply(
  options: ControlChannelOptions,
  jws: string,
  nonce: string,
): Promise<Result<SnapshotReply, ChannelFailure>> {
  const confirmation = await verifyConfirmation(options.identity, jws, nonce);
  return confirmation.ok ? ok({ kind: 'unchanged', confirmation: confirmation.value, jws }) : confirmation;
}

async function credentialsCall(
  options: ControlChannelOptions,
  refs: readonly AskedCredential[],
): Promise<Result<CredentialsReply, ChannelFailure>> {
  const requestId = randomBytes(16).toString('base64url');
  const credentials = refs.map(({ owner, path, narrowing }) => ({ owner, path, ...(narrowing && { narrowing }) }));
  const body = JSON.stringify({ request_id: requestId, credentials });
  const timeoutMs = refs.some(mayTakeLong) ? PROVIDER_TIMEOUT_MS : undefined;
  const sentAt = options.clock.now();
  const answer = await post(options, '/v1/sidecar/credentials', body, timeoutMs);
  if (!answer.ok) return answer;
  const call = { requestId, sentAt, now: options.clock.now() };
  const opened = await openCredentials(options.identity, answer.value.reply.body, call);
  if (!opened.ok) return opened;
  const isWide = opened.value.released.some(
    ({ ref, credential }) => isNarrowed(refs, ref) && credential.narrowed !== true,
  );
  return isWide ? err(channelFailure('invalid_reply', 'it has a value that is not narrowed as asked')) : opened;
}

function mayTakeLong(ref: AskedCredential): boolean {
  return ref.minted === true || ref.narrowing !== undefined || mayAskProvider(ref);
}

function isNarrowed(asked: readonly AskedCredential[], { owner, path }: CredentialRef): boolean {
  return asked.some((each) => each.owner === owner && each.path === path && each.narrowing !== undefined);
}

async function callForUnsealed(
  options: ControlChannelOptions,
  { path, host, reason }: UnsealedRequest,
): Promise<Result<CredentialsReply, ChannelFailure>> {
  const requestId = randomBytes(16).toString('base64url');
  const body = { request_id: requestId, reference: { owner: 'personal', path }, host, reason };
  const sentAt = options.clock.now();
  const answer = await post(options, '/v1/sidecar/unsealed', JSON.stringify(body), PROVIDER_TIMEOUT_MS);
  if (!answer.ok) return answer;
  const call = { requestId, sentAt, now: options.clock.now() };
  return openCredentials(options.identity, answer.value.reply.body, call);
}

async function approvalCall(
  options: ControlChannelOptions,
  { requestId, subject, fingerprint, scope, summary, sessionId, sessionName, folder }: ApprovalCall,
): Promise<Result<ApprovalAnswer, ChannelFailure>> {
  const what =
    'connectorId' in subject
      ? { connector_id: subject.connectorId, operation: subject.operation }
      : { mcp_server_id: subject.mcpServerId, tool: subject.tool };
  const asked = { request_id: requestId, ...what, fingerprint, summary, session_id: sessionId };
  const whole = JSON.stringify({ ...asked, session_name: sessionName, folder, scope });
  const first = await post(options, '/v1/sidecar/approvals', whole);
  // A control plane of an earlier version refuses a request that says where it comes from.
  const isUnknown = !first.ok && first.error.status === 400;
  const answer = isUnknown ? await post(options, '/v1/sidecar/approvals', JSON.stringify(asked)) : first;
  if (!answer.ok) return answer;
  return openApproval(options.identity, answer.value.reply.body, { nonce: answer.value.nonce, requestId });
}

async function approvalWait(
  options: ControlChannelOptions,
  { requestId, approvalId, waitSeconds, signal }: ApprovalWait,
): Promise<Result<ApprovalAnswer, ChannelFailure>> {
  const target = `/v1/sidecar/approvals/${approvalId}?wait=${waitSeconds}&request_id=${requestId}`;
  const headers = { [APPROVAL_KNOWS_HEADER]: APPROVAL_KNOWS_VIEWS };
  const answer = await get(options, target, { waitSeconds, headers, signal });
  if (!answer.ok) return answer;
  const asked = { nonce: answer.value.nonce, requestId, approvalId };
  return openApproval(options.identity, answer.value.reply.body, asked);
}

async function viewCall(
  options: ControlChannelOptions,
  { approvalId, viewId, sealed }: SealedView,
): Promise<Result<void, ChannelFailure>> {
  const body = JSON.stringify({ view_id: viewId, sealed });
  const answer = await post(options, `/v1/sidecar/approvals/${approvalId}/views`, body);
  return answer.ok ? ok(undefined) : answer;
}

async function mcpHealthCall(
  options: ControlChannelOptions,
  report: McpHealthReport,
): Promise<Result<void, ChannelFailure>> {
  const answer = await post(options, '/v1/sidecar/mcp-health', JSON.stringify(report));
  if (answer.ok) return ok(undefined);
  // A control plane of an earlier version refuses a report with hosts.
  const plain = { servers: report.servers.map((server) => ({ ...server, refused_hosts: undefined })) };
  const hasHosts = report.servers.some(({ refused_hosts: hosts }) => hosts !== undefined);
  if (answer.error.status !== 400 || !hasHosts) return answer;
  const again = await post(options, '/v1/sidecar/mcp-health', JSON.stringify(plain));
  return again.ok ? ok(undefined) : again;
}

async function mcpToolsCall(
  options: ControlChannelOptions,
  report: McpToolsReport,
): Promise<Result<number, ChannelFailure>> {
  const answer = await post(options, '/v1/sidecar/mcp-tools', JSON.stringify(report));
  if (!answer.ok) return answer;
  const reply = mcpToolsReported.safeParse(parseJson(answer.value.reply.body));
  return reply.success ? ok(reply.data.policy_version) : err(channelFailure('invalid_reply', 'the reply is not valid'));
}

async function eventsCall(
  options: ControlChannelOptions,
  events: readonly string[],
): Promise<Result<EventsOutcome, ChannelFailure>> {
  const answer = await post(options, '/v1/sidecar/events', `{"events":[${events.join(',')}]}`);
  if (!answer.ok) return answer;
  return verifyEventsOutcome(options.identity, answer.value.reply.body, answer.value.nonce);
}

async function auditHeadsCall(
  options: ControlChannelOptions,
  known: readonly AuditHead[],
): Promise<Result<AuditHeads, ChannelFailure>> {
  const target = `/v1/sidecar/audit-heads?known=${writeKnownHeads(known.slice(-MAX_KNOWN_HEADS))}`;
  const answer = await get(options, target);
  if (!answer.ok) return answer;
  return verifyAuditHeads(options.identity, answer.value.reply.body, answer.value.nonce);
}

async function fetchLoginCall(options: ControlChannelOptions, id: string): Promise<Result<OpenLogin, ChannelFailure>> {
  const answer = await get(options, `/v1/sidecar/pending-logins/${id}`);
  if (!answer.ok) return answer;
  return verifyOpenLogin(options.identity, answer.value.reply.body, answer.value.nonce, id);
}

async function holdLoginCall(
  options: ControlChannelOptions,
  login: OpenLogin,
  tokens: CapturedTokens,
): Promise<Result<void, ChannelFailure>> {
  const sealed = await sealLoginTokens(options.identity.sidecarId, login, tokens);
  const answer = await post(options, `/v1/sidecar/pending-logins/${login.id}`, JSON.stringify({ sealed }));
  if (!answer.ok) return answer;
  return verifyHeldLogin(options.identity, answer.value.reply.body, answer.value.nonce, login.id);
}

interface Get extends Pick<HttpCall, 'signal'> {
  /** How long the control plane may wait before it answers. */
  readonly waitSeconds?: number;
  readonly headers?: HttpCall['headers'];
}

function get(
  options: ControlChannelOptions,
  target: string,
  { waitSeconds = 0, headers = {}, signal }: Get = {},
): Promise<Result<Answer, ChannelFailure>> {
  const timeoutMs = waitSeconds * 1000 + (options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  return send(options, { method: 'GET', target, headers, body: '', timeoutMs, ...(signal && { signal }) });
}

function post(
  options: ControlChannelOptions,
  target: string,
  body: string,
  timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
): Promise<Result<Answer, ChannelFailure>> {
  return send(options, { method: 'POST', target, headers: { 'content-type': 'application/json' }, body, timeoutMs });
}

/** Sends an authenticated call. Only a 2xx or 304 is an answer; everything else is an error. */
async function send(options: ControlChannelOptions, call: HttpCall): Promise<Result<Answer, ChannelFailure>> {
  const { identity, clock } = options;
  const facts = { sidecarId: identity.sidecarId, controlPlaneId: identity.controlPlaneId, now: clock.now() };
  const token = await callToken(
    { ...facts, method: call.method, target: call.target, body: call.body },
    identity.signingKey,
  );
  const headers = { ...call.headers, authorization: `Bearer ${token.jwt}` };
  const reply = await options.http.call({ ...call, headers });
  if (!reply.ok) return err(fromHttpFailure(reply.error));
  const { status } = reply.value;
  if (status === 200 || status === 204 || status === 304) return ok({ reply: reply.value, nonce: token.nonce });
  return err(await errorOf(options.identity, reply.value, token.nonce));
}

/** The {@link ChannelFailure} of a call that got no reply. */
export function fromHttpFailure(failure: Failure<HttpFailureReason>): ChannelFailure {
  const reason = failure.reason === 'reply_too_large' ? 'invalid_reply' : failure.reason;
  return channelFailure(reason, `The control plane could not be reached: ${failure.message}.`);
}

async function errorOf(identity: Identity, reply: HttpReply, nonce: string): Promise<ChannelFailure> {
  const { status } = reply;
  const error = errorInBody(reply.body);
  if (error === null) return unexplainedFailure(status);
  const { code, message, details = {} } = error;
  if (code === 'clock_skew') return clockSkew(textIn(details, 'server_time'));
  if (code === 'sidecar_revoked' && (await isRevocation(identity, textIn(details, 'proof'), nonce))) {
    return channelFailure('revoked', 'This sidecar was revoked. Enrol it again and restart it.', { status, code });
  }
  if (code === 'invalid_sidecar_call') return unknownSidecarFailure(message, status);
  const again = status >= 500 || status === 429 || code === 'replayed_call' || code === 'sidecar_revoked';
  return channelFailure(again ? 'unavailable' : 'refused', `It answered ${status} ${code}: ${message}`, {
    status,
    code,
  });
}

function textIn(details: Readonly<Record<string, unknown>>, name: string): string {
  const value = details[name];
  return typeof value === 'string' ? value : '';
}

function clockSkew(serverTime: string): ChannelFailure {
  return channelFailure(
    'clock_skew',
    `This machine's clock differs by more than a minute from the control plane's, which says ${serverTime}. Correct the clock.`,
    { status: 401, code: 'clock_skew', serverTime },
  );
}

function unknownSidecarFailure(message: string, status: number): ChannelFailure {
  return channelFailure(
    'refused',
    `The control plane does not accept this sidecar's calls: ${message} If the control plane was reinstalled, move identity.json away and start again.`,
    { status, code: 'invalid_sidecar_call' },
  );
}

function unexplainedFailure(status: number): ChannelFailure {
  return channelFailure(
    'unavailable',
    `The server answered ${status} without a reason. Check that the address is that of a control plane.`,
    {
      status,
    },
  );
}

/** The error in a reply's body; null if the body is not the control API's. */
export function errorInBody(body: string): ErrorBody['error'] | null {
  const parsed = errorBody.safeParse(parseJson(body));
  return parsed.success ? parsed.data.error : null;
}
