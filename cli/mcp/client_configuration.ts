import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { AgentConfig, AgentType } from 'add-mcp';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { isJsonWithComments } from './json_with_comments.ts';

/** An MCP client. */
export interface McpClient {
  readonly name: string;
  /** The library's client whose configuration has the same form; the client itself if the library knows it. */
  readonly writtenAs: AgentType;
  readonly title: string;
  readonly format: AgentConfig['format'];
  /** The path of the user's configuration. */
  readonly path: string;
  /** The path of the project's configuration in the working directory; null if the client has none. */
  readonly projectPath: string | null;
}

/** The command that a client starts. */
export interface ClientServer {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

/** The configuration to write: the user's or the project's. */
interface ConfigurationScope {
  readonly project: boolean;
  readonly workingDirectory: string;
}

/** Common names for clients, in addition to the library's. */
export const CLIENT_ALIASES: ReadonlyMap<string, string> = new Map([
  ['claude', 'claude-code'],
  ['code', 'vscode'],
  ['copilot', 'github-copilot-cli'],
  ['gemini', 'gemini-cli'],
  ['grok', 'grok-build'],
  ['kilo', 'kilo-code'],
  ['kimi', 'kimi-code'],
  ['kiro', 'kiro-cli'],
  ['mastra', 'mastracode'],
  ['qwen', 'qwen-code'],
]);

/** Clients that the library does not know. Their configurations have the form of a client that it knows. */
const MORE_CLIENTS: readonly {
  readonly name: string;
  readonly title: string;
  readonly writtenAs: AgentType;
  /** Relative to the user's home, and to a project. */
  readonly path: string;
}[] = [{ name: 'qwen-code', title: 'Qwen Code', writtenAs: 'gemini-cli', path: '.qwen/settings.json' }];

/** Every client, sorted by name. The library is loaded only here, because loading it takes longer than most commands. */
export async function mcpClients(workingDirectory: string): Promise<readonly McpClient[]> {
  const { agents, getAgentTypes } = await import('add-mcp');
  const known = getAgentTypes().map((name) => {
    const agent = agents[name];
    const hasProject = agent.localConfigPath !== undefined;
    return {
      name,
      writtenAs: name,
      title: agent.displayName,
      format: agent.format,
      path: pathOf(agent, { project: false, workingDirectory }),
      projectPath: hasProject ? pathOf(agent, { project: true, workingDirectory }) : null,
    };
  });
  const more = MORE_CLIENTS.filter(({ name }) => !known.some((one) => one.name === name)).map(
    ({ path, ...client }) => ({
      ...client,
      format: agents[client.writtenAs].format,
      path: join(homedir(), path),
      projectPath: join(workingDirectory, path),
    }),
  );
  return [...known, ...more].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Adds the server to the text of a client's configuration: to `current`, or to an empty one if that is null. The library writes
 * to a temporary directory, so that the client's file can be replaced atomically. Fails if the file cannot be parsed.
 */
export async function configurationWith(
  client: McpClient,
  server: ClientServer,
  current: string | null,
  scope: ConfigurationScope,
): Promise<Result<string, string>> {
  if (client.format === 'json' && current !== null && current.trim() !== '' && !isJsonWithComments(current)) {
    return err('it is not valid JSON');
  }
  const directory = mkdtempSync(join(tmpdir(), 'svc-mcp-export-'));
  try {
    const path = join(
      directory,
      basename(scope.project && client.projectPath !== null ? client.projectPath : client.path),
    );
    if (current !== null) writeFileSync(path, current, { mode: 0o600 });
    return await writeByLibrary(client.writtenAs, server, path, scope);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function writeByLibrary(
  name: AgentType,
  server: ClientServer,
  path: string,
  scope: ConfigurationScope,
): Promise<Result<string, string>> {
  const { agents, upsertServer } = await import('add-mcp');
  const agent = agents[name];
  const known = agent.resolveConfigPath;
  agent.resolveConfigPath = () => path;
  try {
    const entry = { command: server.command, args: [...server.args] };
    const result = upsertServer(name, server.name, entry, { local: scope.project, cwd: scope.workingDirectory });
    return result.success ? ok(readFileSync(path, 'utf8')) : err(result.error ?? 'it cannot be written');
  } finally {
    if (known === undefined) delete agent.resolveConfigPath;
    else agent.resolveConfigPath = known;
  }
}

function pathOf(agent: AgentConfig, { project, workingDirectory }: ConfigurationScope): string {
  if (agent.resolveConfigPath !== undefined)
    return agent.resolveConfigPath(agent, { local: project, cwd: workingDirectory });
  return project ? join(workingDirectory, agent.localConfigPath ?? '') : agent.configPath;
}

/** Creates the directory of a configuration if it is missing, private to its owner. */
export function makeDirectory(directory: string): void {
  if (!existsSync(directory)) mkdirSync(directory, { recursive: true, mode: 0o700 });
}
