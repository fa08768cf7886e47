import { z } from 'zod';
import { sealedViewInput } from '../../shared/wire/approval_views.ts';
import { approvalPayload, approvalRequest, approvalWaitQuery } from '../../shared/wire/approvals.ts';
import { auditEvent } from '../../shared/wire/audit_events.ts';
import { auditHeadsPayload, auditHeadsQuery } from '../../shared/wire/audit_heads.ts';
import {
  callClaims,
  credentialsPayload,
  credentialsRequest,
  eventsPayload,
  eventsRequest,
  revocationProof,
  sealedCredential,
  snapshotPayload,
  snapshotProof,
  snapshotQuery,
  unsealedRequest,
} from '../../shared/wire/channel.ts';
import { mcpHealthReport } from '../../shared/wire/mcp/mcp_servers.ts';
import { mcpToolsReport, mcpToolsReported } from '../../shared/wire/mcp/mcp_tools.ts';
import { heldLoginPayload, heldLoginRequest, pendingLoginPayload } from '../../shared/wire/pending_logins.ts';
import { enrolInput, enrolReply } from '../../shared/wire/sidecars.ts';

/** What a sidecar sends. */
const REQUESTS = {
  approvalRequest,
  approvalWaitQuery,
  auditEvent,
  auditHeadsQuery,
  callClaims,
  credentialsRequest,
  enrolInput,
  eventsRequest,
  heldLoginRequest,
  mcpHealthReport,
  mcpToolsReport,
  sealedViewInput,
  snapshotQuery,
  unsealedRequest,
};

/** What a control plane answers. */
const REPLIES = {
  approvalPayload,
  auditHeadsPayload,
  credentialsPayload,
  enrolReply,
  eventsPayload,
  heldLoginPayload,
  mcpToolsReported,
  pendingLoginPayload,
  revocationProof,
  sealedCredential,
  snapshotPayload,
  snapshotProof,
};

/** The schemas of the channel's messages as JSON Schema, by their names. */
export interface ChannelSchemas {
  readonly requests: Readonly<Record<string, unknown>>;
  readonly replies: Readonly<Record<string, unknown>>;
}

export function channelSchemas(): ChannelSchemas {
  return { requests: toJson(REQUESTS), replies: toJson(REPLIES) };
}

function toJson(schemas: Readonly<Record<string, z.ZodType>>): Record<string, unknown> {
  const entries = Object.entries(schemas).map(([name, schema]) => {
    return [name, z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })] as const;
  });
  return Object.fromEntries(entries);
}
