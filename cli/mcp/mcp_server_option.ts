import { err, ok, type Result } from '../../shared/model/result.ts';

/** The server that `--mcp` names, by its name or id; which one that is, the sidecar says. */
export function parseMcpServer(text: string): Result<string, string> {
  if (/^[a-z0-9][a-z0-9-]{0,47}$|^mcp_[0-9a-z]{1,64}$/.test(text)) return ok(text);
  return err(`is ${JSON.stringify(text.slice(0, 64))}: use the name of an MCP server; list them with: svc mcp list`);
}
