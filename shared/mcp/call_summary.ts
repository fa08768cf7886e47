import { canonicalJson } from '../audit/canonical_json.ts';
import type { McpServer } from '../model/mcp_server.ts';
import { toShownLine } from '../model/shown_text.ts';
import { counted } from '../model/sentence.ts';

type Args = Readonly<Record<string, unknown>>;

const MOST_CHARACTERS = 500;
const MOST_NAMES = 20;

/**
 * The text of a call: the server's current configuration, the tool and the arguments. Equal for identical calls only. An
 * approval covers the calls with one SHA-256 of it.
 */
export function callText({ id, revision }: McpServer, tool: string, args: Args): string {
  return textOf([id, revision, tool, args]);
}

/** A fallback for arguments that canonical JSON cannot represent. */
function textOf(value: unknown): string {
  try {
    return canonicalJson(value);
  } catch {
    return JSON.stringify(value);
  }
}

/**
 * The call in one line, for the person who approves it: server, tool, argument names and sizes. Values are left out, because
 * they may contain anything. The line has no control characters. `client` is the name that a remote client gave itself.
 */
export function callSummary({ name, description }: McpServer, tool: string, args: Args, client?: string): string {
  const entries = Object.entries(args);
  const named = entries.slice(0, MOST_NAMES).map(([key, value]) => `${quoteText(key)} (${sizeOf(value)})`);
  const more = entries.length > MOST_NAMES ? [`${entries.length - MOST_NAMES} more`] : [];
  const told = entries.length === 0 ? 'without arguments' : `with ${[...named, ...more].join(', ')}`;
  const what = description === '' ? '' : ` (${description.slice(0, 80)})`;
  const line = `${whoAsks(client)}MCP server ${name}${what}: tool ${quoteText(tool)} ${told}`;
  return toShownLine(line, MOST_CHARACTERS);
}

/** Names the remote client that asks, as the beginning of a line; empty for none. */
export function whoAsks(client: string | undefined): string {
  return client === undefined ? '' : toShownLine(`MCP client ${quoteText(client)}, as it calls itself:`, 200) + ' ';
}

function quoteText(text: string): string {
  return JSON.stringify(text.slice(0, 64));
}

function sizeOf(value: unknown): string {
  if (typeof value === 'string') return counted(value.length, 'character');
  if (Array.isArray(value)) return counted(value.length, 'item');
  if (typeof value === 'object' && value !== null) return counted(Object.keys(value).length, 'member');
  return value === null ? 'null' : typeof value;
}
