import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AgentsWorld, startAgentsWorld } from '../../agents/agents_world.ts';
import { INSTALL_COMMAND, pinnedVersion } from '../../agents/installed_agents.ts';
import { loginOf, plantCredentials, profileOf, TRIED, type Tried } from '../../agents/tried_agents.ts';
import { IS_FULL } from '../../support/full_counts.ts';
import { type Finished, run, runOk, shellEnvironment } from '../../support/program.ts';
import { expectMcpTable } from '../mcp_table.ts';
import { DRIVEN, type DrivenClient } from './driven_clients.ts';
import { MCPORTER, PLAIN, versionOf } from './more_clients.ts';
import { removeByHand } from './remove_by_hand.ts';
import { addNotes, BEFORE, converse, FAREWELL, SERVER } from './notes.ts';
import { ScriptedModel } from './scripted_model.ts';

// The best-known MCP clients, as a person uses each: the gateway is added, a tool is listed, called and approved, the tools
// change, and the gateway is removed. `MCP_MD=write` writes the table of docs/mcp.md.

const credentials = plantCredentials();

const model = new ScriptedModel(SERVER);
let world: AgentsWorld | null;

beforeAll(async () => {
  world = await startAgentsWorld(credentials, model.answer);
  if (world === null) return;
  const { svc, scratch } = world;
  await addNotes(svc, scratch);
});
afterAll(() => world?.stop());

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

/** What plain `npm test` drives. */
const SAMPLE = ['claude', 'codex'];

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
    await converse({ svc, model, client }, driven);
    const done = await client;
    expect({ code: done.code, said: done.stdout }).toEqual({ code: 0, said: expect.stringContaining(FAREWELL) });

    if (driven.remove === null) removeByHand(file);
    else await runOk(join(programs, driven.agent), driven.remove, { env, cwd: folder });
    expect(readFileSync(file, 'utf8')).not.toContain('gateway');
    const left = await run(join(programs, driven.agent), driven.list, { env, cwd: folder });
    expect(left.stdout + left.stderr).not.toMatch(driven.listed);
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
  const more = PLAIN.map(({ title, npm, client, noticesNew, differs }) => [
    `${title} ${versionOf(npm)}`,
    client === null ? 'by hand' : `\`--client ${client}\``,
    'in a session',
    noticesNew ? 'at once' : 'at the next start',
    'by hand',
    differs,
  ]);
  const mcporter = [
    `${MCPORTER.title} ${versionOf(MCPORTER.npm)}`,
    `\`--client ${MCPORTER.client}\``,
    '`mcporter list svc`',
    'at once',
    '`mcporter config remove svc`',
    'Has no model: a person or a script calls the tools. Each command starts the gateway.',
  ];
  const rest = [...more, mcporter].map((cells) => `| ${cells.join(' | ')} |`);
  expectMcpTable('clients', [
    '| Client | Added with `svc mcp export --write` | Listed with | Notices a new tool | Removed with | What differs |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
    ...rest,
  ]);
});
