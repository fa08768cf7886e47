import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { replaceFile } from '../up/replace_file.ts';
import { CLIENT_ALIASES } from './client_configuration.ts';

/** In the state directory, which no agent in a sandbox can write. */
const RECORD = 'mcp_clients.json';

/** A configuration to which `svc mcp export` added the gateway: the user's, or that of a project's folder. */
const configured = z.strictObject({ client: z.string(), path: z.string(), project: z.string().nullable() });
type Configured = z.infer<typeof configured>;

/** How a configuration, in JSON or TOML, names the command `svc mcp gateway`. */
const GATEWAY = /(["'])mcp\1\s*,\s*(["'])gateway\2/;

/** Records that a person added the gateway to a client's configuration. */
export async function recordGateway(home: string, added: Configured, nowMs: number): Promise<void> {
  const known = readRecord(home);
  if (known.some((each) => each.path === added.path && each.client === added.client)) return;
  mkdirSync(home, { recursive: true, mode: 0o700 });
  await replaceFile(join(home, RECORD), `${JSON.stringify([...known, added])}\n`, nowMs, { keepsBackup: false });
}

/**
 * Whether a person gave an agent svc's MCP gateway for a folder: had svc add it to a configuration, which still has it. Then it may use
 * every MCP server, from its sandbox too (decision 0125). What a configuration says by itself does not count: the agent can write its
 * own, and whoever wrote a project that of the project.
 */
export function hasGivenGateway(home: string, agent: string, workingDirectory: string): boolean {
  const name = CLIENT_ALIASES.get(agent) ?? agent;
  const own = readRecord(home).filter(({ client }) => client === name);
  const here = own.filter(({ project }) => project === null || project === workingDirectory);
  return here.some(({ path }) => GATEWAY.test(readIfThere(path)));
}

/** Where the clients that have a sandbox keep their MCP servers: below the home, and below a project. */
export const SANDBOXED_CLIENTS: Readonly<Record<string, { readonly home: string; readonly project: string }>> = {
  'claude-code': { home: '.claude.json', project: '.mcp.json' },
  codex: { home: '.codex/config.toml', project: '.codex/config.toml' },
  'gemini-cli': { home: '.gemini/settings.json', project: '.gemini/settings.json' },
  'github-copilot-cli': { home: '.copilot/mcp-config.json', project: '.mcp.json' },
  opencode: { home: '.config/opencode/opencode.json', project: 'opencode.json' },
  'qwen-code': { home: '.qwen/settings.json', project: '.qwen/settings.json' },
};

/**
 * Says that a configuration has the gateway without a record of it, so that its list of servers is empty in a sandbox: somebody wrote
 * it by hand, an earlier version of svc did, or the agent itself. Null if there is no such configuration.
 */
export function describeUnrecordedGateway(
  agent: string,
  folders: { readonly userHome: string; readonly workingDirectory: string },
): string | null {
  const name = CLIENT_ALIASES.get(agent) ?? agent;
  const files = Object.hasOwn(SANDBOXED_CLIENTS, name) ? SANDBOXED_CLIENTS[name] : undefined;
  if (files === undefined) return null;
  const own = join(folders.userHome, files.home);
  const project = join(folders.workingDirectory, files.project);
  const found = [own, project].find((path) => [path, `${path}c`].some((each) => GATEWAY.test(readIfThere(each))));
  if (found === undefined) return null;
  const option = found === own ? '' : ' --project';
  return `the MCP gateway in ${found} lists no servers in the sandbox, because svc has no record that you added it; if you want it there: svc mcp export --client ${name}${option} --write`;
}

/** A record that cannot be read counts for nothing. */
function readRecord(home: string): readonly Configured[] {
  try {
    return z.array(configured).parse(JSON.parse(readFileSync(join(home, RECORD), 'utf8')));
  } catch {
    return [];
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
