import { z } from 'zod';
import {
  MAX_REPORT_BYTES,
  MAX_TOOL_NAME,
  MAX_TOOLS_OF_SERVER,
  MCP_TOOL_STATES,
  REVIEWED_KINDS,
  TEXT_MARKS,
  TOOL_CHOICES,
} from '../../model/mcp_tool.ts';
import { id, time } from '../primitives.ts';

/** SHA-256 of a tool's text, in hex. */
export const toolHash = z.string().regex(/^[0-9a-f]{64}$/, 'is not a SHA-256 in lower-case hex');

/** A tool as its server describes it. Only the name has a checked shape. */
const definition = z.looseObject({ name: z.string().min(1).max(MAX_TOOL_NAME) });
export type WireToolDefinition = z.output<typeof definition>;

/** The tools that a gateway has seen. */
export const seenTools = z
  .array(definition)
  .min(1)
  .max(MAX_TOOLS_OF_SERVER)
  .refine((tools) => JSON.stringify(tools).length <= 2 * MAX_REPORT_BYTES, 'is too much text');

/** What `tools` are. Absent: tools; a control plane or a sidecar of an earlier version refuses the field. */
export const seenKind = z.enum(REVIEWED_KINDS).optional();

/** `POST /v1/sidecar/mcp-tools`: tools or prompts of a server that its snapshot does not name as reviewed. */
export const mcpToolsReport = z
  .strictObject({ server_id: id('mcp'), kind: seenKind, tools: seenTools })
  .meta({ id: 'McpToolsReport' });
export type McpToolsReport = z.output<typeof mcpToolsReport>;
/** The snapshot of this version has the outcome. The reply itself decides nothing. */
export const mcpToolsReported = z.object({ policy_version: z.number().int() }).meta({ id: 'McpToolsReported' });

/**
 * In a snapshot: the hashes of what a server may offer, of every kind. `kinds`: what the control plane keeps, by default tools.
 * Sidecars ignore kinds that they do not know, and earlier ones the whole field.
 */
export const reviewedTools = z.object({
  server_id: id('mcp'),
  hashes: z.array(toolHash),
  kinds: z.array(z.string()).optional(),
});
export type ReviewedTools = z.output<typeof reviewedTools>;

/** One form of a tool or a prompt. */
const mcpToolRecord = z
  .object({
    /** `tool`, `prompt` or `instructions`. */
    kind: z.string().default('tool'),
    name: z.string(),
    hash: toolHash,
    state: z.enum(MCP_TOOL_STATES),
    /** As the server describes it, without `_meta` and icons. */
    definition,
    /** The newest reviewed form of the same tool, if this one waits. */
    before: definition.nullable(),
    marks: z.array(z.object({ mark: z.enum(TEXT_MARKS), where: z.string() })),
    /** The server itself says that it can destroy something. */
    destructive: z.boolean(),
    /** What the tool policy says about calls. A prompt is always `allow`. */
    choice: z.enum(TOOL_CHOICES),
    seen_at: time,
    /** The user who accepted it; null for a tool of the first list. */
    reviewed_by: z.string().nullable(),
    reviewed_at: time.nullable(),
  })
  .meta({ id: 'McpTool' });
export type McpToolRecord = z.output<typeof mcpToolRecord>;

/** For a person: the name, and what it is if it is no tool. */
export function nameOfRecord({ kind, name }: Pick<McpToolRecord, 'kind' | 'name'>): string {
  if (kind === 'instructions') return kind;
  return kind === 'tool' ? name : `${kind} ${name}`;
}

/** `GET /v1/mcp-servers/{id}/tools`: what waits first, then by name. */
export const mcpToolsReply = z.object({ items: z.array(mcpToolRecord) }).meta({ id: 'McpTools' });
export type McpToolsReply = z.output<typeof mcpToolsReply>;

/** `POST /v1/mcp-servers/{id}/tools/accept`: by hash, so that nothing is accepted that was not shown. */
export const mcpToolsAcceptInput = z
  .strictObject({ hashes: z.array(toolHash).min(1).max(MAX_TOOLS_OF_SERVER) })
  .meta({ id: 'McpToolsAccept' });
