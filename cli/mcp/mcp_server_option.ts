import { err, ok, type Result } from '../../shared/model/result.ts';

/** Parses the name or id of `--mcp`; the sidecar resolves it. */
export function parseMcpServer(text: string): Result<string, string> {
  if (/^[a-z0-9][a-z0-9-]{0,47}$|^mcp_[0-9a-z]{1,64}$/.test(text)) return ok(text);
  return err(`is ${JSON.stringify(text.slice(0, 64))}: use the name of an MCP server (svc mcp list)`);
}
