import { ok, type Result } from '../../../shared/model/result.ts';
import { approvalParams, approvalRequest, approvalWaitQuery } from '../../../shared/wire/approvals.ts';
import {
  credentialsRequest,
  eventsRequest,
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
  snapshotQuery,
  unsealedRequest,
} from '../../../shared/wire/channel.ts';
import { auditHeadsQuery } from '../../../shared/wire/audit_heads.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { mcpHealthReport } from '../../../shared/wire/mcp/mcp_servers.ts';
import { mcpToolsReport, mcpToolsReported } from '../../../shared/wire/mcp/mcp_tools.ts';
import { heldLoginRequest, pendingLoginParams } from '../../../shared/wire/pending_logins.ts';
import { tellHeads } from '../../services/audit/audit_heads.ts';
import { holdLoginTokens, tellPendingLogin } from '../../services/connectors/pending_logins.ts';
import { releaseCredentials, releaseUnsealed } from '../../services/sidecars/credential_release.ts';
import { acceptEvents } from '../../services/audit/event_intake.ts';
import { endOfWait } from '../../kernel/lifetime.ts';
import { noteHealth } from '../../services/mcp/mcp_health.ts';
import { noteTools } from '../../services/mcp/mcp_tools.ts';
import { APPROVAL_KNOWS_HEADER, APPROVAL_KNOWS_VIEWS, sealedViewInput } from '../../../shared/wire/approval_views.ts';
import { takeView } from '../../services/approvals/approval_views.ts';
import { askSidecarApproval, awaitSidecarApproval } from '../../services/approvals/sidecar_approvals.ts';
import { pollSnapshot, type SnapshotReply } from '../../services/sidecars/snapshot.ts';
import { leaveAsSidecar } from '../../services/sidecars/sidecars.ts';
import { forSidecar, type Reply } from '../http/operation.ts';
import { emptyReply, jsonReply } from '../http/replies.ts';

export const getSnapshot = forSidecar({
  summary: "Get the sidecar's snapshot: bindings and references, no secrets",
  description: `A signed JWS. With the newest version in If-None-Match, waits up to "wait" seconds, then returns 304 with a signed ${SNAPSHOT_PROOF_HEADER}. ${SNAPSHOT_KNOWS_HEADER}: ${SNAPSHOT_KNOWS_INACTIVE} asks for that field, and ${SNAPSHOT_KNOWS_ALSO_HEADER}: ${SNAPSHOT_KNOWS_TUNNELS} for that one; ${SNAPSHOT_KNOWS_OTHER_PORTS} there asks for bindings of hosts at other ports than 443, ${SNAPSHOT_KNOWS_REGION_SETS} for regions that are a set, ${SNAPSHOT_KNOWS_BYTE_LIMITS} for limits of bytes, ${SNAPSHOT_KNOWS_TOOLS} for the reviewed tools of MCP servers, and ${SNAPSHOT_KNOWS_CERTIFICATES} for the client certificates.`,
  query: snapshotQuery,
  replies: { 200: 'A compact JWS (application/jose)', 304: 'Unchanged' },
  async handle({ context, who, query, request }) {
    const held = parseHeldVersion(request.headers.get('if-none-match'));
    return context.openCalls.holdWhile('snapshot poll', who.sidecarId, async () => {
      const knowsInactive = request.headers.get(SNAPSHOT_KNOWS_HEADER) === SNAPSHOT_KNOWS_INACTIVE;
      const also = (request.headers.get(SNAPSHOT_KNOWS_ALSO_HEADER) ?? '').split(/\s*,\s*/);
      const knowsTunnels = also.includes(SNAPSHOT_KNOWS_TUNNELS);
      const knowsOtherPorts = also.includes(SNAPSHOT_KNOWS_OTHER_PORTS);
      const knowsRegionSets = also.includes(SNAPSHOT_KNOWS_REGION_SETS);
      const knowsByteLimits = also.includes(SNAPSHOT_KNOWS_BYTE_LIMITS);
      const knowsTools = also.includes(SNAPSHOT_KNOWS_TOOLS);
      const knowsCertificates = also.includes(SNAPSHOT_KNOWS_CERTIFICATES);
      const signal = endOfWait(request, context);
      const knowsBindings = { knowsOtherPorts, knowsRegionSets, knowsByteLimits };
      const knows = { knowsInactive, knowsTunnels, knowsTools, knowsCertificates, ...knowsBindings };
      const poll = { held, waitSeconds: query.wait, signal, ...knows };
      const reply = await pollSnapshot(context, who, poll);
      return reply.ok ? ok(snapshotResponse(reply.value)) : reply;
    });
  },
});

export const postCredentials = forSidecar({
  summary: 'Release credentials, encrypted to the sidecar',
  body: credentialsRequest,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, body }) {
    return signedReply(await releaseCredentials(context, who, body));
  },
});

export const postUnsealed = forSidecar({
  summary: 'Release one credential in plaintext for a program',
  description:
    "Only for the sidecar's own user, for a client whose requests no binding can authenticate. The audit log records the host and the reason. The reply is encrypted to the sidecar, as for other credentials.",
  body: unsealedRequest,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, body }) {
    return signedReply(await releaseUnsealed(context, who, body));
  },
});

export const postLeave = forSidecar({
  summary: 'End this sidecar',
  description: 'Its next call is refused. What it has not sent to the audit log by then is lost.',
  replies: { 204: 'Ended' },
  async handle({ context, who }) {
    return emptyReply(await leaveAsSidecar(context, who));
  },
});

export const postEvents = forSidecar({
  summary: 'Add audit events',
  description: 'Sending an event again has no effect: each id is stored once.',
  body: eventsRequest,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, body }) {
    return signedReply(await acceptEvents(context, who, body.events));
  },
});

export const getSidecarAuditHeads = forSidecar({
  summary: "Get the heads of the audit log's chains, and the state of the heads that the sidecar remembers",
  query: auditHeadsQuery,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, query }) {
    return signedReply(await tellHeads(context, who, query.known));
  },
});

export const getSidecarPendingLogin = forSidecar({
  summary: "Get a login that the sidecar's user has opened",
  params: pendingLoginParams,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, params }) {
    return signedReply(await tellPendingLogin(context, who, params.id));
  },
});

export const postSidecarPendingLogin = forSidecar({
  summary: 'Send the tokens of a login, encrypted to its key',
  description: 'Accepted once. They are held until the user stores or deletes them.',
  params: pendingLoginParams,
  body: heldLoginRequest,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, params, body }) {
    return signedReply(await holdLoginTokens(context, who, params.id, body.sealed));
  },
});

export const postMcpHealth = forSidecar({
  summary: 'Report the running MCP servers',
  description:
    "Replaces this sidecar's earlier report. The API shows a user the newest report of that user's sidecars.",
  body: mcpHealthReport,
  replies: { 204: 'Noted' },
  async handle({ context, who, body }) {
    await noteHealth(context, who, body);
    return ok({ status: 204 });
  },
});

export const postMcpTools = forSidecar({
  summary: 'Report tools or prompts of an MCP server',
  description:
    "Those of the server's first list are accepted with the server. What is new or has changed since waits for a person. The snapshot says which tools may be called.",
  body: mcpToolsReport,
  replies: { 200: mcpToolsReported },
  async handle({ context, who, body }) {
    const noted = await noteTools(context, who, body);
    return jsonReply(noted.ok ? ok({ policy_version: noted.value }) : noted);
  },
});

export const postSidecarApproval = forSidecar({
  summary: 'Request an approval for one request',
  description: 'Uses up a decision that covers the request; otherwise the request waits for one.',
  body: approvalRequest,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, body }) {
    return signedReply(await askSidecarApproval(context, who, body));
  },
});

export const getSidecarApproval = forSidecar({
  summary: 'Wait for a decision on a request',
  params: approvalParams,
  query: approvalWaitQuery,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, params, query, request }) {
    const { wait: waitSeconds, request_id: requestId } = query;
    return context.openCalls.holdWhile('approval wait', who.sidecarId, async () => {
      const knowsViews = request.headers.get(APPROVAL_KNOWS_HEADER) === APPROVAL_KNOWS_VIEWS;
      const wait = { id: params.id, requestId, waitSeconds, knowsViews, signal: endOfWait(request, context) };
      return signedReply(await awaitSidecarApproval(context, who, wait));
    });
  },
});

export const postSidecarApprovalView = forSidecar({
  summary: 'Show a request that waits to a page',
  description: 'The request as a JWE that only the page can open.',
  params: approvalParams,
  body: sealedViewInput,
  replies: { 204: 'Kept until the page has it, for two minutes at most' },
  async handle({ context, who, params, body }) {
    return emptyReply(await takeView(context, who, params.id, body));
  },
});

const JOSE = 'application/jose';

/** 200 with a text signed by the control plane. */
function signedReply(jws: Result<string, ApiError>): Result<Reply, ApiError> {
  return jws.ok ? ok(new Response(jws.value, { headers: { 'content-type': JOSE } })) : jws;
}

function snapshotResponse(reply: SnapshotReply): Response {
  const etag = `"${reply.version}"`;
  if (reply.kind === 'unchanged') {
    return new Response(null, { status: 304, headers: { etag, [SNAPSHOT_PROOF_HEADER]: reply.proof } });
  }
  return new Response(reply.jws, { headers: { etag, 'content-type': JOSE } });
}

/** The version in our If-None-Match; null for anything else, which gets the snapshot. */
function parseHeldVersion(etag: string | null): number | null {
  const digits = /^(?:W\/)?"(\d{1,15})"$/.exec(etag ?? '')?.[1];
  return digits === undefined ? null : Number(digits);
}
