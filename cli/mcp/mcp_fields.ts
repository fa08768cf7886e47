import { err, ok, type Result } from '../../shared/model/result.ts';
import { ownReference, withOwnReferences } from '../../shared/wire/mcp/mcp_references.ts';
import { MCP_SERVER_FIELDS, mcpServerInput, type McpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/** The options of `svc mcp add` and `svc mcp update` that become fields of a server. */
export interface McpFlags {
  readonly description?: string;
  readonly env?: readonly string[];
  readonly url?: string;
  readonly header?: readonly string[];
  readonly transport?: string;
  readonly allowTool?: readonly string[];
  readonly denyTool?: readonly string[];
  readonly approveTool?: readonly string[];
  readonly isolation?: string;
}

export type Fields = Readonly<Record<string, unknown>>;

/** Parses `NAME=value`; a name without a value is a credential. */
export function envOf(entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    entries.map((entry) => {
      const at = entry.indexOf('=');
      return at < 0 ? [entry, ownReference(entry)] : [entry.slice(0, at), entry.slice(at + 1)];
    }),
  );
}

/** Parses `Name: value`; `{NAME}` stands for a credential. */
export function headersOf(entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    entries.map((entry) => {
      const at = entry.indexOf(':');
      if (at < 1) {
        throw new CliError(
          EXIT.usage,
          '--header must have the form "Name: value", such as "Authorization: Bearer {TOKEN}"',
        );
      }
      return [entry.slice(0, at).trim(), withOwnReferences(entry.slice(at + 1).trim())];
    }),
  );
}

/** The URL with each `{NAME}` in its query replaced by a reference. */
export function urlOf(text: string): string {
  const query = text.indexOf('?');
  return query < 0 ? text : text.slice(0, query) + withOwnReferences(text.slice(query));
}

/** A record as the API accepts it, without the fields that the control plane adds. */
export function writableFields(record: McpServerRecord): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([field]) => MCP_SERVER_FIELDS.includes(field)));
}

/** Each field and the flag that sets it. */
const FLAG_OF_FIELD: Readonly<Record<string, string>> = {
  name: 'NAME',
  command: 'COMMAND (after --)',
  description: '--description',
  env: '--env',
  url: '--url',
  headers: '--header',
  transport: '--transport',
  isolation: '--isolation',
  'tools.allow': '--allow-tool',
  'tools.deny': '--deny-tool',
  'tools.approval': '--approve-tool',
};

/** Validates the fields; the error has one line per problem and names fields by their flags. */
export function validFields(fields: Fields): Result<Fields, readonly string[]> {
  const parsed = mcpServerInput.safeParse(fields);
  if (parsed.success) return ok(fields);
  return err(
    parsed.error.issues.map((issue) => {
      const [first = '', second = ''] = issue.path.map(String);
      const flag = FLAG_OF_FIELD[`${first}.${second}`] ?? FLAG_OF_FIELD[first] ?? first;
      const entry = first === 'env' || first === 'headers' ? ` ${second}` : '';
      return `${flag}${entry} ${issue.message}`.trim();
    }),
  );
}

const SECRET_NAME = /(?:key|token|secret|passw(?:or)?d|credential|authorization)/i;

/** Warns about values that look like secrets: the process list and the shell's history show them. */
export function findTypedSecrets(
  env: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>>,
): string[] {
  return [
    ...findTyped(env, (name) => `use --env ${name}, and replace the value at the service that issued it`),
    ...findTyped(headers, () => 'write {NAME} in its place, and replace the value at the service that issued it'),
  ];
}

function findTyped(values: Readonly<Record<string, string>>, fix: (name: string) => string): string[] {
  return Object.entries(values)
    .filter(([name, value]) => SECRET_NAME.test(name) && value !== '' && !value.includes('vault://'))
    .map(([name]) => `${name} looks like a secret and was stored in plaintext in the configuration: ${fix(name)}`);
}
