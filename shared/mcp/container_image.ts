import type { McpServer } from '../model/mcp_server.ts';
import { readDockerRun } from './dangers/docker_options.ts';
import { isContainerCommand } from './server_isolation.ts';

/** The image of a configuration's own `docker run`. */
interface ContainerImage {
  /** As the command has it: with a tag, which can move, or a digest. */
  readonly reference: string;
  /** Its place in the command. */
  readonly index: number;
  readonly platform: string | null;
}

/** The image that a server's own command runs; null if it starts no container, or is not a command that is ever run. */
export function containerImageOf({ command }: Pick<McpServer, 'command'>): ContainerImage | null {
  const start = command.indexOf('run');
  if (!isContainerCommand(command) || start < 0) return null;
  const { run } = readDockerRun(command.slice(start + 1));
  if (run === null) return null;
  const platform = run.options.findLast(({ name }) => name === '--platform')?.value ?? null;
  return { reference: run.image, index: command.length - run.args.length - 1, platform };
}
