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
 * The configuration by which an agent starts svc's MCP gateway in a folder: one that a person had svc add it to, and that still has
 * it. Null if there is none. What a configuration says by itself does not count: the agent can write its own, and whoever wrote a
 * project that of the project.
 */
export function findConfiguredGateway(home: string, agent: string, workingDirectory: string): string | null {
  const name = CLIENT_ALIASES.get(agent) ?? agent;
  const own = readRecord(home).filter(({ client }) => client === name);
  const here = own.filter(({ project }) => project === null || project === workingDirectory);
  return here.find(({ path }) => GATEWAY.test(readIfThere(path)))?.path ?? null;
}

/** A record that cannot be read counts for nothing: agents have their sandbox. */
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
