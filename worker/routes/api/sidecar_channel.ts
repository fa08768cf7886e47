import { ok, type Result } from '../../../shared/model/result.ts';
import { approvalParams, approvalRequest, approvalWaitQuery } from '../../../shared/wire/approvals.ts';
import {
  credentialsRequest,
  eventsRequest,
  SNAPSHOT_PROOF_HEADER,
  snapshotQuery,
  unsealedRequest,
} from '../../../shared/wire/channel.ts';
import { auditHeadsQuery } from '../../../shared/wire/audit_heads.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { mcpHealthReport } from '../../../shared/wire/mcp_servers.ts';
import { tellHeads } from '../../services/audit/audit_heads.ts';
import { releaseCredentials, releaseUnsealed } from '../../services/sidecars/credential_release.ts';
import { acceptEvents } from '../../services/audit/event_intake.ts';
import { endOfWait } from '../../kernel/lifetime.ts';
import { noteHealth } from '../../services/mcp/mcp_health.ts';
import { askSidecarApproval, awaitSidecarApproval } from '../../services/approvals/sidecar_approvals.ts';
import { pollSnapshot, type SnapshotReply } from '../../services/sidecars/snapshot.ts';
import { forSidecar, type Reply } from '../http/operation.ts';

export const getSnapshot = forSidecar({
  summary: "The sidecar's snapshot: bindings and references, no secrets",
  description: `A signed JWS. With If-None-Match of the newest version, waits up to "wait" seconds and answers 304 with a signed ${SNAPSHOT_PROOF_HEADER}.`,
  query: snapshotQuery,
  replies: { 200: 'A compact JWS (application/jose)', 304: 'Unchanged' },
  async handle({ context, who, query, request }) {
    const held = heldVersion(request.headers.get('if-none-match'));
    const leave = context.openCalls.enter('snapshot poll', who.sidecarId);
    if (!leave.ok) return leave;
    try {
      const reply = await pollSnapshot(context, who, {
        held,
        waitSeconds: query.wait,
        signal: endOfWait(request, context),
      });
      return reply.ok ? ok(snapshotResponse(reply.value)) : reply;
    } finally {
      leave.value();
    }
  },
});

export const postCredentials = forSidecar({
  summary: 'Release credentials, sealed to the sidecar',
  body: credentialsRequest,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, body }) {
    return signed(await releaseCredentials(context, who, body));
  },
});

export const postUnsealed = forSidecar({
  summary: 'Release one credential that a program gets as it is',
  description:
    "Of the sidecar's own user only, for a client whose requests no binding can complete. The audit log says for which host and why. Answered as credentials are, sealed to the sidecar.",
  body: unsealedRequest,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, body }) {
    return signed(await releaseUnsealed(context, who, body));
  },
});

export const postEvents = forSidecar({
  summary: 'Take in audit events',
  description: 'Sending an event again is harmless: an id is written once.',
  body: eventsRequest,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, body }) {
    return signed(await acceptEvents(context, who, body.events));
  },
});

export const getSidecarAuditHeads = forSidecar({
  summary: 'Say where the chains of the audit log end, and how the heads stand that the sidecar remembers',
  query: auditHeadsQuery,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, query }) {
    return signed(await tellHeads(context, who, query.known));
  },
});

export const postMcpHealth = forSidecar({
  summary: 'Say what MCP servers run',
  description:
    "In place of what this sidecar said of them before; the API shows a user the newest word of that user's sidecars.",
  body: mcpHealthReport,
  replies: { 204: 'Noted' },
  async handle({ context, who, body }) {
    await noteHealth(context, who, body);
    return ok({ status: 204 });
  },
});

export const postSidecarApproval = forSidecar({
  summary: 'Ask for an approval of one request',
  description: 'Uses up a decision that covers the request; else the request waits for one.',
  body: approvalRequest,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, body }) {
    return signed(await askSidecarApproval(context, who, body));
  },
});

export const getSidecarApproval = forSidecar({
  summary: 'Wait for a decision on a request',
  params: approvalParams,
  query: approvalWaitQuery,
  replies: { 200: 'A compact JWS (application/jose)' },
  async handle({ context, who, params, query, request }) {
    const leave = context.openCalls.enter('approval wait', who.sidecarId);
    if (!leave.ok) return leave;
    const { wait: waitSeconds, request_id: requestId } = query;
    try {
      const wait = { id: params.id, requestId, waitSeconds, signal: endOfWait(request, context) };
      return signed(await awaitSidecarApproval(context, who, wait));
    } finally {
      leave.value();
    }
  },
});

const JOSE = 'application/jose';

/** 200 with what the control plane signed. */
function signed(jws: Result<string, ApiError>): Result<Reply, ApiError> {
  return jws.ok ? ok(new Response(jws.value, { headers: { 'content-type': JOSE } })) : jws;
}

function snapshotResponse(reply: SnapshotReply): Response {
  const etag = `"${reply.version}"`;
  if (reply.kind === 'unchanged') {
    return new Response(null, { status: 304, headers: { etag, [SNAPSHOT_PROOF_HEADER]: reply.proof } });
  }
  return new Response(reply.jws, { headers: { etag, 'content-type': JOSE } });
}

/** The version in an If-None-Match of ours; null for anything else, which is answered with the snapshot. */
function heldVersion(etag: string | null): number | null {
  const digits = /^(?:W\/)?"(\d{1,15})"$/.exec(etag ?? '')?.[1];
  return digits === undefined ? null : Number(digits);
}
