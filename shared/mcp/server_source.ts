import type { McpServer } from '../model/mcp_server.ts';
import { canonicalName } from '../net/mcp_source.ts';
import { commandDangers } from './command_dangers.ts';
import { containerImageOf } from './container_image.ts';
import { fetchedPackages } from './dangers/package_runners.ts';
import { readOciReference } from './oci_reference.ts';

/**
 * Everything that a server starts or sends requests to, each as a source in canonical form; null if that cannot be told, as for
 * a program of the machine or unchecked code. A registry entry's name is not among them: anybody can write one into a configuration.
 */
export function sourcesOf(server: Pick<McpServer, 'mode' | 'command' | 'env' | 'url'>): readonly string[] | null {
  const { mode, command, env, url } = server;
  if (mode === 'remote') {
    if (url === null || !URL.canParse(url)) return null;
    return [`host:${new URL(url).hostname}`];
  }
  if (commandDangers(command, env).some(({ severity }) => severity !== 'warn')) return null;
  const fetched = fetchedPackages(command);
  if (fetched !== null) return fetched.names.map((name) => `${fetched.kind}:${canonicalName(fetched.kind, name)}`);
  const image = containerImageOf({ command });
  // Only Docker's own name: what another program with this name at a path starts is not known.
  const repository = image === null || command[0] !== 'docker' ? null : readOciReference(image.reference)?.repository;
  return repository === null || repository === undefined ? null : [`oci:${canonicalName('oci', repository)}`];
}
