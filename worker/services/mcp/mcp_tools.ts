import type { AuditEventType } from '../../../shared/model/audit_event.ts';
import { REVIEWED_KINDS, type ReviewedKind } from '../../../shared/model/mcp_tool.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { toShownLine } from '../../../shared/model/shown_text.ts';
import { choiceOf, isDestructive } from '../../../shared/mcp/tool_policy.ts';
import { hasWarning } from '../../../shared/mcp/tools/text_marks.ts';
import { hashedText, toolText } from '../../../shared/mcp/tools/tool_definition.ts';
import { marksOf, markTool } from '../../../shared/mcp/tools/tool_marks.ts';
import { formsGivenUp, planReview, type SeenTool } from '../../../shared/mcp/tools/tool_review.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import {
  type McpToolRecord,
  type McpToolsReply,
  type McpToolsReport,
  nameOfRecord,
  type ReviewedTools,
  type WireToolDefinition,
} from '../../../shared/wire/mcp/mcp_tools.ts';
import { bumpPolicy, policyVersion } from '../../store/accounts.ts';
import type { Database } from '../../store/database.ts';
import type { McpServerRow } from '../../store/mcp/mcp_servers.ts';
import {
  acceptMcpTools,
  dropMcpTools,
  insertMcpTools,
  listMcpTools,
  listReviewedTools,
  type McpToolRow,
  summariseMcpTools,
} from '../../store/mcp/mcp_tools.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { sha256Hex } from '../../kernel/sha256.ts';
import { type Changed, commitPolicy, controlChain } from '../../kernel/policy_change.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { findUsableServer } from '../sharing/shared_servers.ts';
import { configurationOf } from './mcp_configuration.ts';
import { applyRules } from './apply_rules.ts';
import { mcpServerEvent, visibleMcpServer, writableMcpServer } from './mcp_servers.ts';

type Seen = SeenTool & { readonly text: string };

/**
 * Takes the tools or prompts that a gateway has seen. Those of the server's first list are accepted with the server; what is new or has
 * changed since waits for a person. Returns the policy version that includes the outcome. A server that the sidecar may not see
 * is ignored.
 */
export async function noteTools(
  context: ServiceContext,
  caller: Pick<Caller, 'userId' | 'enterpriseId'>,
  report: McpToolsReport,
): Promise<Result<number, ApiError>> {
  const { kind = 'tool' } = report;
  const seen = report.tools.flatMap((tool) => lookAt(kind, tool));
  const noted = await commit(context, controlChain(caller), async () => {
    const row = await findUsableServer(context, caller, report.server_id);
    if (row === null) return ok({ statements: [], events: [], value: null });
    const known = await summariseMcpTools(context.database, row.id);
    const { added, dropped } = planReview(ofKind(known, kind), seen);
    if (added.length === 0) return ok({ statements: [], events: [], value: null });
    const seenAt = nowText(context);
    const rows = added.map(({ hash, name, text, state: planned }): McpToolRow => {
      const state = isNothing({ kind, definition: text }) ? 'reviewed' : planned;
      const reviewedAt = state === 'reviewed' ? seenAt : null;
      return { serverId: row.id, hash, kind, name, definition: text, state, seenAt, reviewedBy: null, reviewedAt };
    });
    const [reviewed, waiting] = [rows.filter(isReviewed), rows.filter((one) => !isReviewed(one))];
    return ok({
      statements: [
        ...dropMcpTools(context.database, row.id, dropped),
        ...insertMcpTools(context.database, row.id, rows),
        ...(reviewed.length > 0 ? [bumpPolicy(context.database, row)] : []),
      ],
      events: [
        ...toolsEvent(
          'control.mcp_server.tools_learned',
          caller.userId,
          row,
          reviewed.filter((one) => !isNothing(one)),
        ),
        ...toolsEvent('control.mcp_server.tools_waiting', caller.userId, row, waiting),
      ],
      value: null,
    });
  });
  return noted.ok ? ok(await policyVersion(context.database, caller.userId)) : noted;
}

/** Those of a server's tools that may be listed and called, after new and changed ones were noted. */
export async function keepReviewed<T extends WireToolDefinition>(
  context: ServiceContext,
  caller: Pick<Caller, 'userId' | 'enterpriseId'>,
  serverId: string,
  tools: readonly T[],
): Promise<readonly T[]> {
  const looked = tools.map((tool) => {
    const text = toolText(tool);
    return { tool, hash: text === null ? null : sha256Hex(text) };
  });
  const known = await summariseMcpTools(context.database, serverId);
  const isKnown = new Set<string | null>([null, ...known.map(({ hash }) => hash)]);
  const news = looked.filter(({ hash }) => !isKnown.has(hash)).map(({ tool }) => tool);
  if (news.length > 0) await noteTools(context, caller, { server_id: serverId, tools: news });
  const after = news.length > 0 ? await summariseMcpTools(context.database, serverId) : known;
  const reviewed = new Set<string | null>(after.filter(isReviewed).map(({ hash }) => hash));
  return looked.filter(({ hash }) => reviewed.has(hash)).map(({ tool }) => tool);
}

function ofKind<T extends Pick<McpToolRow, 'kind'>>(rows: readonly T[], kind: ReviewedKind): readonly T[] {
  return rows.filter((row) => row.kind === kind);
}

/** A server without instructions, which is kept so that later ones are a change, and needs no look. */
function isNothing({ kind, definition }: Pick<McpToolRow, 'kind' | 'definition'>): boolean {
  return kind === 'instructions' && definition === NO_INSTRUCTIONS;
}

const NO_INSTRUCTIONS = '{"description":"","name":"instructions"}';

const isReviewed = ({ state }: Pick<McpToolRow, 'state'>): boolean => state === 'reviewed';

/** Empty for a tool that nobody could look at. */
function lookAt(kind: ReviewedKind, tool: McpToolsReport['tools'][number]): readonly Seen[] {
  const text = toolText(tool);
  if (text === null) return [];
  const warning = hasWarning(marksOf(markTool(tool)));
  const hash = sha256Hex(hashedText(kind, text));
  return [{ hash, name: tool.name, characters: text.length, hasWarning: warning, text }];
}

/** Refuses with `not_found`. */
export async function listTools(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<McpToolsReply, ApiError>> {
  const server = await visibleMcpServer(context, caller, id);
  return server.ok ? ok({ items: await toolRecords(context, server.value) }) : server;
}

/**
 * Accepts these forms of tools. The person has seen each of them, so one that is not waiting any more is a conflict. Refuses with
 * `not_found`, `admin_required`, `conflict`.
 */
export async function acceptTools(
  context: ServiceContext,
  caller: Caller,
  id: string,
  hashes: readonly string[],
): Promise<Result<Changed<McpToolsReply>, ApiError>> {
  const accepted = await commitPolicy(context, caller, async () => {
    const server = await writableMcpServer(context, caller, id);
    if (!server.ok) return server;
    const row = server.value;
    const known = await summariseMcpTools(context.database, id);
    const wanted = known.filter(({ hash, state }) => state === 'waiting' && hashes.includes(hash));
    if (wanted.length !== new Set(hashes).size) return err(changedMeanwhile(row));
    const givenUp = REVIEWED_KINDS.flatMap((kind) => formsGivenUp(ofKind(known, kind), ofKind(wanted, kind)));
    const by = { by: caller.userId, at: nowText(context) };
    return ok({
      statements: [
        ...acceptMcpTools(
          context.database,
          id,
          wanted.map(({ hash }) => hash),
          by,
        ),
        ...dropMcpTools(context.database, id, givenUp),
        bumpPolicy(context.database, row),
      ],
      events: toolsEvent('control.mcp_server.tools_accepted', caller.userId, row, wanted),
      value: row,
    });
  });
  if (!accepted.ok) return accepted;
  const { value: row, policyVersion: version } = accepted.value;
  return ok({ value: { items: await toolRecords(context, row) }, policyVersion: version });
}

/** For a snapshot: one entry for each of the servers, so that a server without reviewed tools lists none. */
export async function reviewedToolsOf(
  database: Database,
  servers: readonly Pick<McpServerRow, 'id'>[],
): Promise<ReviewedTools[]> {
  const rows = await listReviewedTools(
    database,
    servers.map(({ id }) => id),
  );
  const hashes = new Map<string, string[]>(servers.map(({ id }) => [id, []]));
  for (const { serverId, hash } of rows) hashes.get(serverId)?.push(hash);
  return Array.from(hashes, ([serverId, its]) => ({ server_id: serverId, hashes: its, kinds: [...REVIEWED_KINDS] }));
}

async function toolRecords(context: ServiceContext, server: McpServerRow): Promise<McpToolRecord[]> {
  const rows = await listMcpTools(context.database, server.id);
  const newest = new Map(rows.filter(isReviewed).map((row) => [nameOfRecord(row), row]));
  const policy = (await applyRules(context, [server])).get(server.id)?.server.tools ?? configurationOf(server).tools;
  const records = rows
    .filter((row) => !isNothing(row))
    .map((row): McpToolRecord => {
      const definition = definitionOf(row);
      const before = isReviewed(row) ? undefined : newest.get(nameOfRecord(row));
      const isTool = row.kind === 'tool';
      return {
        kind: row.kind,
        name: row.name,
        hash: row.hash,
        state: row.state,
        definition,
        before: before === undefined ? null : definitionOf(before),
        marks: markTool(definition).map(({ mark, where }) => ({ mark, where })),
        destructive: isTool && isDestructive(definition),
        choice: isTool ? choiceOf(policy, definition) : 'allow',
        seen_at: row.seenAt,
        reviewed_by: row.reviewedBy,
        reviewed_at: row.reviewedAt,
      };
    });
  return records.toSorted((a, b) => Number(a.state === 'reviewed') - Number(b.state === 'reviewed'));
}

function definitionOf({ definition }: McpToolRow): McpToolRecord['definition'] {
  const parsed: McpToolRecord['definition'] = JSON.parse(definition);
  return parsed;
}

const MAX_NAMES_CHARACTERS = 1_000;

/** One event for all tools of a change, with their names as far as they fit. */
function toolsEvent(
  type: AuditEventType,
  actor: string,
  row: McpServerRow,
  tools: readonly Pick<McpToolRow, 'kind' | 'name'>[],
): AuditDraft[] {
  if (tools.length === 0) return [];
  const event = mcpServerEvent(type, actor, row);
  const names = toShownLine(tools.map((tool) => nameOfRecord(tool)).join(', '), MAX_NAMES_CHARACTERS);
  return [{ ...event, data: { ...event.data, 'svc.mcp.tool': names } }];
}

function changedMeanwhile({ name, id }: McpServerRow): ApiError {
  const message = `the tools of ${name} have changed since they were shown: look at them again with GET /v1/mcp-servers/${id}/tools`;
  return apiError('conflict', message);
}
