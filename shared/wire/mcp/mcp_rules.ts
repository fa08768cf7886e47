import { z } from 'zod';
import { OWNERS } from '../../model/host_binding.ts';
import { MAX_RULE_PATTERNS } from '../../model/mcp_rules.ts';
import { MCP_ISOLATIONS } from '../../model/mcp_server.ts';
import { parseSourcePattern } from '../../net/mcp_source.ts';
import { oneOfValues } from '../host_binding_fields.ts';
import { id } from '../primitives.ts';
import { revision } from '../../net/http/if_match.ts';
import { mcpTools } from './mcp_server_fields.ts';

/** A pattern of sources in canonical form. */
const sourcePattern = z
  .string()
  .superRefine((text, context) => {
    const parsed = parseSourcePattern(text);
    if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.error });
  })
  .overwrite((text) => {
    const parsed = parseSourcePattern(text);
    return parsed.ok ? parsed.value : text;
  });

const fields = {
  /** The sources of servers that may run, such as `npm:@acme/*`; null: every source. */
  sources: z
    .array(sourcePattern)
    .max(MAX_RULE_PATTERNS, { error: `has more than ${MAX_RULE_PATTERNS} sources` })
    .nullable()
    .default(null),
  /** The least isolation of a local server. */
  isolation: oneOfValues(MCP_ISOLATIONS).default('process'),
  /** Code without an exact version may not run. */
  pinned_only: z.boolean().default(false),
  /** For every server; a server's own policy can only be stricter. */
  tools: mcpTools,
};

/** Rules, as they are stored, and as `POST /v1/mcp-rules/check` says what they would stop. */
export const mcpRulesInput = z.strictObject(fields).meta({ id: 'McpRulesInput' });
export type McpRulesInput = z.output<typeof mcpRulesInput>;

/** `PUT /v1/mcp-rules` replaces the rules: with the `revision` that was read, only if they are still the same. */
export const mcpRulesReplacement = z.strictObject({ ...fields, revision }).meta({ id: 'McpRulesReplacement' });

/** `GET /v1/mcp-rules` */
export const mcpRulesRecord = z
  .object({
    ...fields,
    sources: z.array(z.string()).nullable(),
    isolation: oneOfValues(MCP_ISOLATIONS),
    revision,
  })
  .meta({ id: 'McpRules' });
export type McpRulesRecord = z.output<typeof mcpRulesRecord>;

/** The servers of the enterprise and of its members that the rules stop. */
export const mcpRulesCheck = z
  .object({
    items: z.array(
      z.object({
        id: id('mcp'),
        name: z.string(),
        owner: oneOfValues(OWNERS),
        /** The address of the member whose server it is; null if there is none, and for one of the enterprise. */
        email: z.string().nullable(),
        problem: z.string(),
      }),
    ),
  })
  .meta({ id: 'McpRulesCheck' });
export type McpRulesCheck = z.output<typeof mcpRulesCheck>;
