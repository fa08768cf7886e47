import { readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

const servers = z.looseObject({
  mcp: z.record(z.string(), z.unknown()).optional(),
  mcpServers: z.union([z.array(z.looseObject({ name: z.string() })), z.record(z.string(), z.unknown())]).optional(),
});

/** Removes the gateway from a client's file, as a person does whose client has no command for it. */
export function removeByHand(file: string): void {
  const { mcp, mcpServers, ...others } = servers.parse(JSON.parse(readFileSync(file, 'utf8')));
  delete mcp?.['svc'];
  const left = Array.isArray(mcpServers) ? mcpServers.filter(({ name }) => name !== 'svc') : mcpServers;
  if (!Array.isArray(left)) delete left?.['svc'];
  writeFileSync(file, JSON.stringify({ ...others, ...(mcp && { mcp }), ...(left && { mcpServers: left }) }));
}
