import { err, ok, type Result } from '../../model/result.ts';
import type { FieldProblem } from '../../model/problem.ts';

/** In an input, `{id}` means the server's own id, which is unknown until it is created. */
const OWN_ID = '{id}';

/** The reference to one of the server's own credentials, as written in an input. */
export function ownReference(name: string): string {
  return `vault://mcp-servers/${OWN_ID}/${name}`;
}

/** A person's text with each `{NAME}` turned into the reference to that credential. */
export function withOwnReferences(text: string): string {
  return text.replaceAll(/\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (whole, name: string, at: number) =>
    text.slice(0, at).endsWith('vault://mcp-servers/') ? whole : ownReference(name),
  );
}

const SCHEME = /vault:\/\//gi;
const OWN_FORM =
  /^vault:\/\/mcp-servers\/(?:\{id\}|mcp_[0-7][0-9a-hjkmnp-tv-z]{25})\/(?!SVC_)[A-Za-z_][A-Za-z0-9_]{0,127}(?![A-Za-z0-9_])/;
const SERVER_OF_REFERENCE = /vault:\/\/mcp-servers\/([^/]*)\//g;

/** Why a reference in a text is not to an MCP server's credential; null if it is fine. */
export function otherReferenceProblem(text: string): string | null {
  for (const { index } of text.matchAll(SCHEME)) {
    if (OWN_FORM.test(text.slice(index, index + MAX_REFERENCE_CHARACTERS))) continue;
    return `contains a reference that is not the server's own: write vault://mcp-servers/${OWN_ID}/NAME, where NAME is the name of one of its credentials`;
  }
  return null;
}

const MAX_REFERENCE_CHARACTERS = 256;

/** The text with a word in place of each reference, to check the rest of it. */
export function withoutReferences(text: string): string {
  return text.replaceAll(/vault:\/\/mcp-servers\/(?:\{id\}|mcp_[0-9a-z]{26})\/[A-Za-z0-9_]+/g, 'reference');
}

/** The fields of a configuration that may contain references. */
interface ReferringFields {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly url: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** The fields with `id` in each reference. Refuses a reference to another server. */
export function withOwnId<T extends ReferringFields>(fields: T, id: string): Result<T, readonly FieldProblem[]> {
  const problems: FieldProblem[] = [];
  const own = (text: string, field: string): string => {
    const named = text.replaceAll(`vault://mcp-servers/${OWN_ID}/`, `vault://mcp-servers/${id}/`);
    const isForeign = Array.from(named.matchAll(SERVER_OF_REFERENCE)).some(([, server]) => server !== id);
    if (isForeign) problems.push({ field, message: foreignReference() });
    return named;
  };
  const settled = {
    ...fields,
    command: fields.command.map((argument, index) => own(argument, `command.${index}`)),
    env: mapValues(fields.env, (value, name) => own(value, `env.${name}`)),
    url: fields.url === null ? null : own(fields.url, 'url'),
    headers: mapValues(fields.headers, (value, name) => own(value, `headers.${name}`)),
  };
  return problems.length === 0 ? ok(settled) : err(problems);
}

function foreignReference(): string {
  return `refers to a credential of another server: write vault://mcp-servers/${OWN_ID}/NAME`;
}

function mapValues(
  record: Readonly<Record<string, string>>,
  change: (value: string, name: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]));
}
