import { canonicalJson } from '../../shared/audit/canonical_json.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { toShownLine } from '../../shared/model/shown_text.ts';
import { sha256Hex } from '../../machine/sha256.ts';

type Args = Readonly<Record<string, unknown>>;

const MOST_CHARACTERS = 500;
const MOST_NAMES = 20;

/** SHA-256, hex, of what makes two calls the same: the server as it is configured now, the tool, the arguments. */
export function argumentsHash({ id, revision }: McpServer, tool: string, args: Args): string {
  return sha256Hex(textOf([id, revision, tool, args]));
}

/** Arguments that canonical JSON cannot hold are still the same as themselves. */
function textOf(value: unknown): string {
  try {
    return canonicalJson(value);
  } catch {
    return JSON.stringify(value);
  }
}

/**
 * What a person is asked to approve, in one line: the server, the tool, and of the arguments the names and how long they
 * are. Values are not told, for they may hold anything; nothing in the line can steer a terminal.
 */
export function callSummary({ name, description }: McpServer, tool: string, args: Args): string {
  const entries = Object.entries(args);
  const named = entries.slice(0, MOST_NAMES).map(([key, value]) => `${quoted(key)} (${sizeOf(value)})`);
  const more = entries.length > MOST_NAMES ? [`${entries.length - MOST_NAMES} more`] : [];
  const told = entries.length === 0 ? 'without arguments' : `with ${[...named, ...more].join(', ')}`;
  const what = description === '' ? '' : ` (${description.slice(0, 80)})`;
  const line = `MCP server ${name}${what}: tool ${quoted(tool)} ${told}`;
  return toShownLine(line, MOST_CHARACTERS);
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 64));
}

function sizeOf(value: unknown): string {
  if (typeof value === 'string') return `${value.length} characters`;
  if (Array.isArray(value)) return `${value.length} items`;
  if (typeof value === 'object' && value !== null) return `${Object.keys(value).length} members`;
  return value === null ? 'null' : typeof value;
}
