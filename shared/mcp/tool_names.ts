import { MCP_SERVER_NAME } from '../model/mcp_server.ts';
import type { Sha256Hex } from '../model/sha256_hex.ts';

/** The longest tool name, and the characters, that every model provider accepts. */
const MAX_TOOL_NAME_CHARACTERS = 64;

const SEPARATOR = '__';
const PLAIN = /^[A-Za-z0-9_-]+$/;
const DIGEST_CHARACTERS = 12;
/** The suffix of a shortened name. A name that already has such a suffix is shortened too, so that neither can pass for the other. */
const SHORTENED = /_[0-9a-f]{12}$/;

/**
 * A tool's name for clients: `<server>__<tool>`. If it is too long, or has characters that a provider refuses, the tool part
 * becomes `<beginning>_<12 digits of its SHA-256>`: always the same, whatever other tools there are. A server's name has no
 * `_`, so the first `__` ends it and two servers never share a name. Without a server (an empty text) the name has no prefix.
 */
export function formatToolName(server: string, tool: string, sha256Hex: Sha256Hex): string {
  const prefix = server === '' ? '' : server + SEPARATOR;
  const room = MAX_TOOL_NAME_CHARACTERS - prefix.length;
  const isPlain = tool.length <= room && PLAIN.test(tool) && !SHORTENED.test(tool);
  return prefix + (isPlain ? tool : shortenTool(tool, room, sha256Hex));
}

/** The server and the rest of an exposed name; null if it is none. The rest may be a shortened name. */
export function splitToolName(name: string): { readonly server: string; readonly tool: string } | null {
  const at = name.indexOf(SEPARATOR);
  if (at < 0) return null;
  const server = name.slice(0, at);
  const tool = name.slice(at + SEPARATOR.length);
  return MCP_SERVER_NAME.test(server) && tool !== '' ? { server, tool } : null;
}

function shortenTool(tool: string, room: number, sha256Hex: Sha256Hex): string {
  const digest = sha256Hex(tool).slice(0, DIGEST_CHARACTERS);
  const beginning = tool.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, Math.max(0, room - DIGEST_CHARACTERS - 1));
  return `${beginning}_${digest}`;
}
