import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { foundIn, plantSecret } from '../support/planted_secret.ts';
import { runOk, SVC } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { waitFor } from '../support/wait_for.ts';
import { addServers } from './mcp_servers.ts';

// Clients are configured by `svc mcp export`, with references only.

const SECRET = plantSecret();
const configuration = z.object({
  mcpServers: z.object({ svc: z.object({ command: z.string(), args: z.array(z.string()) }) }),
});

let svc: Svc;
let folder: string;
let project: string;

beforeAll(async () => {
  svc = await Svc.up();
  folder = await addServers(svc);
  project = mkdtempSync(join(tmpdir(), 'svc-e2e-project-'));
  await svc.ok(['mcp', 'credential', 'set', 'everything', 'PLANTED_TOKEN', '--stdin'], { input: SECRET });
  await svc.ok(['mcp', 'consent', '--yes']);
});
afterAll(async () => {
  await svc.stop();
  rmSync(folder, { recursive: true, force: true });
  rmSync(project, { recursive: true, force: true });
});

it('the configuration written for a client starts the gateway, and contains no secret', async () => {
  // The home is given on the command line, so the configuration must name it.
  const args = ['mcp', 'export', '--home', svc.home, '--client', 'cursor', '--project', '--write'];
  const { stdout } = await runOk(SVC, args, { cwd: project });
  const text = readFileSync(stdout.trim(), 'utf8');
  expect(stdout.trim()).toBe(join(project, '.cursor', 'mcp.json'));
  expect(foundIn(text, SECRET)).toEqual([]);
  const { command, args: gatewayArgs } = configuration.parse(JSON.parse(text)).mcpServers.svc;

  const client = new Client({ name: 'exported', version: '1.0.0' });
  await client.connect(new StdioClientTransport({ command, args: gatewayArgs, cwd: project, stderr: 'inherit' }));
  // A server that takes long to start is listed once it runs.
  await waitFor('the tools of both servers', async () => {
    const { tools } = await client.listTools();
    return ['files__read_text_file', 'everything__echo'].every((name) => tools.some((tool) => tool.name === name));
  });
  const answer = await client.callTool({ name: 'everything__echo', arguments: { message: 'hello' } });
  expect(JSON.stringify(answer.content)).toContain('hello');
  await client.close();
});
