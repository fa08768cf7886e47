import { z } from 'zod';
import { id, owner, page, pageQuery, time } from './primitives.ts';

/** The longest grant. It also ends with the session, which svc cannot see from the control plane. */
export const MOST_GRANT_SECONDS = 8 * 3600;
const MOST_GRANT_TIMES = 100;

/**
 * What a person allows besides the request that was approved: further requests of the same operation with the same path
 * inputs, from the same session.
 */
export const grantInput = z
  .strictObject({
    /** How long it holds. */
    seconds: z.number().int().min(60).max(MOST_GRANT_SECONDS),
    /** How many requests it lets through, the approved one included. Null: any number. */
    times: z.number().int().min(2).max(MOST_GRANT_TIMES).nullable().default(null),
  })
  .meta({ id: 'ApprovalGrantInput' });
export type GrantInput = z.output<typeof grantInput>;

/**
 * `changed`: the connector has or had another version than the one that the grant was given for, the MCP server another configuration, or
 * other rules hold.
 * `giver_left`: somebody who gave it was suspended, has left, or got another role, or left a group that approves.
 */
const GRANT_STATES = ['open', 'over', 'used_up', 'changed', 'giver_left', 'revoked'] as const;
export type GrantState = (typeof GRANT_STATES)[number];

export const grantRecord = z
  .object({
    id: id('apg'),
    state: z.enum(GRANT_STATES),
    /** The subject, as in an approval. */
    connector_id: id('con').nullable(),
    connector_fqn: z.string().nullable(),
    connector_version: z.string().nullable(),
    operation: z.string().nullable(),
    mcp_server_id: id('mcp').nullable(),
    mcp_server: z.string().nullable(),
    mcp_server_version: z.string().nullable(),
    tool: z.string().nullable(),
    owner,
    /** The request that was approved with it, in one line. */
    summary: z.string(),
    /** True if it covers identical requests only. */
    identical_only: z.boolean(),
    user_id: z.string(),
    sidecar_id: z.string().nullable(),
    session_id: z.string().nullable(),
    session_name: z.string().nullable(),
    /** Everybody who gave it: under rules, those who approved the request. */
    given_by: z.array(z.string()).default([]),
    times: z.number().int().nullable(),
    /** How many requests it has let through, the approved one included. */
    used: z.number().int(),
    last_used_at: time,
    given_at: time,
    ends_at: time,
    revoked_at: time.nullable(),
  })
  .meta({ id: 'ApprovalGrant' });
export type GrantRecord = z.infer<typeof grantRecord>;

/** `GET /v1/approval-grants`: newest first. */
export const grantsQuery = z.strictObject(pageQuery);
export const grantsPage = page(grantRecord).meta({ id: 'ApprovalGrantsPage' });
export const grantParams = z.strictObject({ id: id('apg') });
