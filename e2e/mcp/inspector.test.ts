import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ONLY_FULL } from '../support/full_counts.ts';
import { foundIn, plantSecret } from '../support/planted_secret.ts';
import { run, ROOT, SVC } from '../support/program.ts';
import { waitFor } from '../support/wait_for.ts';
import { startWorld, type World } from '../support/world.ts';
import { addServers, answerWithIssues, FILE_TEXT, HOST, installTickets, RUN_LIST } from './mcp_servers.ts';

// A third-party client, MCP Inspector, over both fronts of the gateway.

const INSPECTOR = join(ROOT, 'node_modules', '.bin', 'mcp-inspector');
const SECRET = plantSecret();
const toolList = z.object({
  tools: z.array(
    z.object({ name: z.string(), annotations: z.looseObject({}).optional(), inputSchema: z.looseObject({}) }),
  ),
});
const called = z.object({
  isError: z.boolean().optional(),
  content: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })),
  structuredContent: z.unknown().optional(),
});

let world: World;
let folder: string;

beforeAll(async () => {
  world = await startWorld([HOST]);
  await installTickets(world.svc, SECRET);
  folder = await addServers(world.svc);
});
afterAll(async () => {
  await world.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The inspector's arguments for the location of the gateway. */
const FRONTS = [
  ['stdio', () => [SVC, 'mcp', 'gateway', '-e', `SVC_HOME=${world.svc.home}`]],
  [
    'HTTP',
    () => {
      const token = readFileSync(join(world.svc.home, 'sidecar', 'host.token'), 'utf8').trim();
      return [
        `${world.svc.runFile.proxy_url}/v1/mcp`,
        '--transport',
        'http',
        '--header',
        `Authorization: Bearer ${token}`,
      ];
    },
  ],
] as const;

describe.each(FRONTS)('MCP Inspector over %s', (front, target) => {
  // Over stdio each request starts the gateway and all servers anew.
  const alike = front === 'HTTP' ? [''] : ONLY_FULL;
  const inspect = async (...request: string[]): Promise<unknown> => {
    const done = await run(INSPECTOR, ['--cli', ...target(), ...request]);
    expect(done.code === 0 ? '' : `exit code ${done.code}: ${done.stderr}${done.stdout}`).toBe('');
    expect(foundIn(done.stdout + done.stderr, SECRET)).toEqual([]);
    return JSON.parse(done.stdout);
  };

  it.each(alike)('lists the tools of connectors and of every server%s', async () => {
    // A server that takes long to start is listed once it runs, and over stdio each call starts it anew.
    const tools = await waitFor('the tools of every server', async () => {
      const listed = toolList.parse(await inspect('--method', 'tools/list')).tools;
      const names = listed.map(({ name }) => name);
      return [RUN_LIST, 'files__read_text_file', 'everything__echo'].every((name) => names.includes(name)) && listed;
    });
    expect(tools.find(({ name }) => name === RUN_LIST)).toMatchObject({
      annotations: { readOnlyHint: true, destructiveHint: false },
      inputSchema: {
        properties: { project: { type: 'string' }, filter_state_: { type: 'string' } },
        required: ['project'],
      },
    });
  });

  it.each(alike)('runs an operation of a connector, with the credential added outside%s', async () => {
    world.upstream.reset();
    answerWithIssues(world);
    const args = ['project=a b', 'filter_state_=open', 'page=2'].flatMap((pair) => ['--tool-arg', pair]);
    const result = called.parse(await inspect('--method', 'tools/call', '--tool-name', RUN_LIST, ...args));
    expect(result).toMatchObject({ content: [{ text: '{"issues":[7]}' }], structuredContent: { issues: [7] } });
    const request = world.upstream.last();
    expect(request.target).toBe('/projects/a%20b/issues?filter%5Bstate%5D=open&page=2');
    expect(request.headers('authorization')).toEqual([`Bearer ${SECRET}`]);
  });

  it('calls a tool of a server', async () => {
    const args = ['--tool-arg', `path=${join(folder, 'read.me')}`];
    const result = called.parse(
      await inspect('--method', 'tools/call', '--tool-name', 'files__read_text_file', ...args),
    );
    expect(result.content[0]?.text).toContain(FILE_TEXT);
  });
});
