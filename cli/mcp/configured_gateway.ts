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
