import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type AgentsWorld, startAgentsWorld } from '../../agents/agents_world.ts';
import { INSTALL_COMMAND, pinnedVersion } from '../../agents/installed_agents.ts';
import { loginOf, plantCredentials, profileOf, TRIED, type Tried } from '../../agents/tried_agents.ts';
import { IS_FULL } from '../../support/full_counts.ts';
import { type Finished, run, runOk, shellEnvironment } from '../../support/program.ts';
import { expectStatus } from '../../support/svc.ts';
import { waitFor } from '../../support/wait_for.ts';
import { expectMcpTable } from '../mcp_table.ts';
import { DRIVEN, type DrivenClient } from './driven_clients.ts';
import { ScriptedModel } from './scripted_model.ts';

// The best-known MCP clients, as a person uses each: the gateway is added, a tool is listed, called and approved, the tools
// change, and the gateway is removed. `MCP_MD=write` writes the table of docs/mcp.md.

const SERVER = 'notes';
const WORD = `word-${randomBytes(8).toString('hex')}`;
const FAREWELL = `farewell-${randomBytes(8).toString('hex')}`;
const DENIED = 'does not allow this tool';
const TOOLS = ['read', 'send', 'extra'].map((name) => ({
  name,
  description: `The tool ${name} of the notes.`,
  inputSchema: { type: 'object', properties: { turn: { type: 'integer' } } },
}));
/** The tools of a client that starts, and after the change. */
const BEFORE = ['--set', 'read=allow', '--set', 'send=ask', '--set', 'extra=deny'];
const AFTER = ['--set', 'read=deny', '--set', 'extra=allow'];
const credentials = plantCredentials();
const pending = z.object({ items: z.array(z.object({ id: z.string(), tool: z.string() })) });

const model = new ScriptedModel(SERVER);
let world: AgentsWorld | null;

beforeAll(async () => {
  world = await startAgentsWorld(credentials, model.answer);
  if (world === null) return;
  const { svc, scratch } = world;
  const file = join(scratch, 'tools.json');
  writeFileSync(file, JSON.stringify(TOOLS));
  const command = [process.execPath, join(import.meta.dirname, '..', 'listing_server.cjs'), file, WORD];
  expectStatus(await svc.api('POST', '/v1/mcp-servers', { name: SERVER, command }), 201);
  await svc.ok(['mcp', 'consent', SERVER, '--yes', '--unchecked']);
});
afterAll(() => world?.stop());

async function approveSend({ svc }: AgentsWorld): Promise<void> {
  const asked = await waitFor('the approval', async () => {
    const { items } = pending.parse((await svc.api('GET', '/v1/approvals?state=pending')).body);
    return items.find(({ tool }) => tool === 'send');
  });
  await svc.ok(['approvals', 'approve', asked.id]);
}

function triedOf(driven: DrivenClient): Tried {
  const tried = TRIED.find(({ agent, login }) => agent === driven.agent && login === driven.login);
  if (tried === undefined) throw new Error(`${driven.agent} is not tried by ${driven.login}`);
  return tried;
}

/** A new home of a person who uses this client. */
function newHome({ scratch, programs }: AgentsWorld, { agent, env: more = {}, configured }: DrivenClient) {
  const home = join(scratch, agent);
  const folder = join(home, 'work');
  mkdirSync(folder, { recursive: true });
  if (configured !== undefined) {
    const [path, text] = configured;
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  const PATH = `${programs}:${process.env['PATH'] ?? ''}`;
  return { folder, env: { ...shellEnvironment(), HOME: home, TMPDIR: home, PATH, ...more } };
}

/** How many requests a client may make with its old tools after it was notified. */
const MOST_TURNS = 5;
/** What plain `npm test` drives. */
const SAMPLE = ['claude', 'codex'];

/** What the model has the client do: a call, a call that needs an approval, and a call of a tool that is added meanwhile. */
async function converse(
  agents: AgentsWorld,
  { noticesNew, keepsRemoved }: DrivenClient,
  client: Promise<Finished>,
): Promise<void> {
  let turn = await model.next(client);
  const offers = (name: string) => turn.tools.some((tool) => tool.name.endsWith(`${SERVER}__${name}`));
  expect(['read', 'send', 'extra'].filter((name) => offers(name))).toEqual(['read', 'send']);
  turn.call('read', { turn: 1 });
  turn = await model.next(client);
  expect(turn.body).toContain(`${WORD} read`);
  turn.call('send', { turn: 2 });
  await approveSend(agents);
  turn = await model.next(client);
  expect(turn.body).toContain(`${WORD} send`);

  await agents.svc.ok(['mcp', 'tools', SERVER, ...AFTER]);
  // A refused call shows that the gateway has the change, and has notified the client before it answered.
  let turnsSince = 0;
  for (let at = 3; !offers('extra') && turnsSince < MOST_TURNS; at += 1) {
    turn.call('read', { turn: at });
    turn = await model.next(client);
    if (turn.body.includes(DENIED)) turnsSince += 1;
  }
  expect([offers('extra'), offers('read')]).toEqual([noticesNew, keepsRemoved]);
  if (noticesNew) {
    turn.call('extra', { turn: 0 });
    turn = await model.next(client);
  }
  expect(turn.body.includes(`${WORD} extra`)).toBe(noticesNew);
  turn.answer(FAREWELL);
}

describe.each(IS_FULL ? DRIVEN : DRIVEN.filter(({ agent }) => SAMPLE.includes(agent)))('$client', (driven) => {
  it('lists and calls tools of the gateway, waits for an approval, and notices a change', async ({ skip }) => {
    if (world === null) {
      skip(`the agents are not installed: ${INSTALL_COMMAND}`);
      return;
    }
    const { svc, programs } = world;
    const { folder, env } = newHome(world, driven);
    const input = credentials[loginOf(triedOf(driven)).secret] ?? '';
    expect((await svc.cli(['login', driven.agent, '--stdin'], { env, input })).code).toBe(0);
    await svc.ok(['mcp', 'tools', SERVER, ...BEFORE]);

    const { stdout: path } = await svc.cli(
      ['mcp', 'export', '--home', svc.home, '--client', driven.client, '--write'],
      { env, cwd: folder },
    );
    const file = path.trim();
    expect(readFileSync(file, 'utf8')).toContain('gateway');
    const listed = await run(join(programs, driven.agent), driven.list, { env, cwd: folder });
    expect(listed.stdout + listed.stderr).toMatch(driven.listed);

    const args = ['run', '--login', driven.login, driven.agent, ...driven.args];
    const client: Promise<Finished> = svc.cli(args, { env, cwd: folder });
    await converse(world, driven, client);
    const done = await client;
    expect({ code: done.code, said: done.stdout }).toEqual({ code: 0, said: expect.stringContaining(FAREWELL) });

    if (driven.remove !== null) await runOk(join(programs, driven.agent), driven.remove, { env, cwd: folder });
    expect(readFileSync(file, 'utf8').includes('gateway')).toBe(driven.remove === null);
  });
});

it('the table of docs/mcp.md says what each client does', () => {
  const rows = DRIVEN.map((driven) => {
    const { agent, client, list, noticesNew, remove, differs } = driven;
    const command = (words: readonly string[]): string => `\`${[agent, ...words].join(' ')}\``;
    const cells = [
      `${profileOf(agent).title} ${pinnedVersion(triedOf(driven).npm)}`,
      `\`--client ${client}\``,
      command(list),
      noticesNew ? 'at once' : 'at the next start',
      remove === null ? 'by hand' : command(remove),
      differs,
    ];
    return `| ${cells.join(' | ')} |`;
  });
  expectMcpTable('clients', [
    '| Client | Added with `svc mcp export --write` | Listed with | Notices a new tool | Removed with | What differs |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
  ]);
});
