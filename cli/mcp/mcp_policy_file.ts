import { isDeepStrictEqual } from 'node:util';
import { stringify } from 'yaml';
import { z } from 'zod';
import { OWNERS } from '../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { oneOfValues } from '../../shared/wire/host_binding_fields.ts';
import { mcpRulesInput, type McpRulesInput, type McpRulesRecord } from '../../shared/wire/mcp/mcp_rules.ts';
import { mcpTools } from '../../shared/wire/mcp/mcp_server_fields.ts';
import type { McpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { parseYaml } from '../terminal/parse_yaml.ts';

// The API's schemas without their defaults, which allow everything: what a file leaves out stays as it is.
const toolFields = mcpTools.unwrap().shape;
const someTools = z
  .strictObject({
    allow: toolFields.allow.unwrap().exactOptional(),
    deny: toolFields.deny.unwrap().exactOptional(),
    approval: toolFields.approval.unwrap().exactOptional(),
  })
  .default({});
const ruleFields = mcpRulesInput.shape;
const someRules = z.strictObject({
  sources: ruleFields.sources.unwrap().exactOptional(),
  isolation: ruleFields.isolation.unwrap().exactOptional(),
  pinned_only: ruleFields.pinned_only.unwrap().exactOptional(),
  tools: someTools,
});
const someServer = z.strictObject({
  name: z.string(),
  owner: oneOfValues(OWNERS).default('personal'),
  tools: someTools,
});

const policyFile = z.strictObject({ rules: someRules.optional(), servers: z.array(someServer).default([]) });
/** The policy file: the rules of the enterprise, and which tools of which server may be called. */
export type PolicyFile = z.output<typeof policyFile>;

/** What the control plane has now. */
export interface PolicyInForce {
  readonly rules: McpRulesRecord;
  readonly servers: readonly McpServerRecord[];
}

interface FieldChange {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

export interface PolicyChanges {
  /** Null if the rules stay. */
  readonly rules: { readonly input: McpRulesInput; readonly fields: readonly FieldChange[] } | null;
  readonly servers: readonly {
    readonly server: McpServerRecord;
    readonly tools: McpServerRecord['tools'];
    readonly fields: readonly FieldChange[];
  }[];
}

/** Reads a policy file: YAML, thus JSON too. Returns every problem, each with the place in the file. */
export function parsePolicyFile(text: string): Result<PolicyFile, readonly string[]> {
  const read = parseYaml(text);
  if (!read.ok) return read;
  const { value: content } = read;
  if (content === null) return err(['the file is empty: `svc mcp policy export` writes one']);
  const parsed = policyFile.safeParse(content);
  if (!parsed.success)
    return err(parsed.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`.trim()));
  const { servers } = parsed.data;
  const repeated = servers.filter((one, index) => servers.findIndex((other) => isSameServer(one, other)) < index);
  return repeated.length > 0 ? err(repeated.map(({ name }) => `the server ${name} is there twice`)) : ok(parsed.data);
}

interface Named {
  readonly name: string;
  readonly owner: string;
}

const isSameServer = (one: Named, other: Named): boolean => one.name === other.name && one.owner === other.owner;

/** The changes that make `inForce` what the file says. Returns the servers that do not exist, as problems. */
export function planPolicy(
  { rules, servers }: PolicyFile,
  inForce: PolicyInForce,
): Result<PolicyChanges, readonly string[]> {
  const found = servers.map((wanted) => ({
    wanted,
    server: inForce.servers.find((server) => isSameServer(wanted, server)),
  }));
  const problems = found.flatMap(({ wanted, server }) =>
    server === undefined ? [`there is no server ${wanted.name} with the owner ${wanted.owner}`] : [],
  );
  if (problems.length > 0) return err(problems);
  const before = rulesOf(inForce.rules);
  const after = { ...before, ...rules, tools: { ...before.tools, ...rules?.tools } };
  const fieldsOfRules = listChanges(before, after);
  const changed = found.flatMap(({ wanted, server }) => {
    if (server === undefined) return [];
    const wantedTools = { ...server.tools, ...wanted.tools };
    const fields = listChanges(server.tools, wantedTools);
    return fields.length === 0 ? [] : [{ server, tools: wantedTools, fields }];
  });
  return ok({
    rules: fieldsOfRules.length === 0 ? null : { input: after, fields: fieldsOfRules },
    // A caller who is no admin may change none of the enterprise, and should learn it before anything has changed.
    servers: changed.toSorted((a, b) => a.server.owner.localeCompare(b.server.owner)),
  });
}

function rulesOf({ sources, isolation, pinned_only, tools }: McpRulesRecord): McpRulesInput {
  return { sources, isolation, pinned_only, tools };
}

/** Members that differ, by their path. */
function listChanges(before: object, after: object, prefix = ''): FieldChange[] {
  const from = new Map<string, unknown>(Object.entries(before));
  const to = new Map<string, unknown>(Object.entries(after));
  return [...to].flatMap(([name, value]) => {
    const old = from.get(name);
    if (isDeepStrictEqual(old, value)) return [];
    const field = prefix + name;
    return isRecord(old) && isRecord(value) ? listChanges(old, value, `${field}.`) : [{ field, from: old, to: value }];
  });
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The policy in force as a file. */
export function formatPolicyFile({ rules, servers }: PolicyInForce): string {
  const named = servers
    .map(({ name, owner, tools }) => ({ name, owner, tools }))
    .toSorted((a, b) => a.owner.localeCompare(b.owner) || a.name.localeCompare(b.name));
  return stringify({ rules: rulesOf(rules), servers: named });
}
