import { z } from 'zod';
import {
  MAX_REPORT_BYTES,
  MAX_TOOL_NAME,
  MAX_TOOLS_OF_SERVER,
  MCP_TOOL_STATES,
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

/** `POST /v1/sidecar/mcp-tools`: tools of a server that its snapshot does not name as reviewed. */
export const mcpToolsReport = z.strictObject({ server_id: id('mcp'), tools: seenTools }).meta({ id: 'McpToolsReport' });
export type McpToolsReport = z.output<typeof mcpToolsReport>;
/** The snapshot of this version has the outcome. The reply itself decides nothing. */
export const mcpToolsReported = z.object({ policy_version: z.number().int() }).meta({ id: 'McpToolsReported' });

/** In a snapshot: the hashes of the tools of a server that may be listed and called. */
export const reviewedTools = z.object({ server_id: id('mcp'), hashes: z.array(toolHash) });
export type ReviewedTools = z.output<typeof reviewedTools>;

/** One form of a tool. */
export const mcpToolRecord = z
  .object({
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
    /** What the tool policy says about calls. */
    choice: z.enum(TOOL_CHOICES),
    seen_at: time,
    /** The user who accepted it; null for a tool of the first list. */
    reviewed_by: z.string().nullable(),
    reviewed_at: time.nullable(),
  })
  .meta({ id: 'McpTool' });
export type McpToolRecord = z.output<typeof mcpToolRecord>;

/** `GET /v1/mcp-servers/{id}/tools`: what waits first, then by name. */
export const mcpToolsReply = z.object({ items: z.array(mcpToolRecord) }).meta({ id: 'McpTools' });
export type McpToolsReply = z.output<typeof mcpToolsReply>;

/** `POST /v1/mcp-servers/{id}/tools/accept`: by hash, so that nothing is accepted that was not shown. */
export const mcpToolsAcceptInput = z
  .strictObject({ hashes: z.array(toolHash).min(1).max(MAX_TOOLS_OF_SERVER) })
  .meta({ id: 'McpToolsAccept' });
