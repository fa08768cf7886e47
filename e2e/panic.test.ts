import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { identify } from '../machine/process_identity.ts';
import { plantSecret } from './support/planted_secret.ts';
import { kill } from './support/process.ts';
import { start, SVC } from './support/program.ts';
import { Svc } from './support/svc.ts';
import { waitFor } from './support/wait_for.ts';
import { startWorld, type World } from './support/world.ts';

// Decision 0061: one command that stops everything of svc on this machine.

const HOST = 'api.example.test';
/** Sends requests and has a child process; both ignore signals. */
const AGENT = `
  process.on('SIGTERM', () => {});
  const child = require('node:child_process').spawn(process.execPath, ['-e', "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"]);
  fetch('https://${HOST}/').then(async (reply) => console.log(JSON.stringify({ status: reply.status, pids: [process.pid, child.pid] })));
  setInterval(() => {}, 1000);`;

const said = z.object({ status: z.number(), pids: z.array(z.number()) });
const report = z.object({
  sessions_ended: z.array(z.string()),
  processes_ended: z.array(z.number()),
  sidecar_id: z.string(),
  sidecar_revoked: z.boolean(),
  stopped: z.boolean(),
  unsealed: z.array(z.unknown()).nullable(),
  not_done: z.array(z.string()),
  start_again: z.string(),
});
const sidecars = z.object({ items: z.array(z.object({ id: z.string(), revoked_at: z.string().nullable() })) });

let world: World;
let again: Svc | null;
let agent: ChildProcess;
let agentPids: readonly number[];

beforeEach(async () => {
  again = null;
  world = await startWorld([HOST]);
  await world.svc.secret('user/key', plantSecret());
  await world.svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/key' });
  agent = start(SVC, ['run', '--', process.execPath, '-e', AGENT], { env: { SVC_HOME: world.svc.home } });
  let text = '';
  agent.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  agent.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const line = await waitFor(`the agent: ${text}`, () => /^\{.*\}$/m.exec(text)?.[0]);
  const { status, pids } = said.parse(JSON.parse(line));
  expect(status).toBe(200);
  agentPids = pids;
});
afterEach(async () => {
  for (const pid of [agent.pid, ...agentPids]) kill(pid, 'SIGKILL');
  await again?.stop();
  await world.stop();
});

const aliveOf = (pids: readonly (number | undefined)[]): readonly (number | undefined)[] =>
  pids.filter((pid) => pid !== undefined && identify(pid) !== null);

async function startAgain(): Promise<Svc> {
  again = await Svc.up({
    home: world.svc.home,
    upstreamCaFiles: [world.ca.file],
    resolve: [`${HOST}:127.0.0.1:${world.upstream.port}`],
  });
  return again;
}

async function isRevoked(svc: Svc, id: string): Promise<boolean | undefined> {
  const { items } = sidecars.parse((await svc.api('GET', '/v1/sidecars')).body);
  const found = items.find((each) => each.id === id);
  return found && found.revoked_at !== null;
}

describe('svc panic', () => {
  it('changes nothing without --yes, and with it ends sessions, agents and svc, and revokes the sidecar; the next start enrols a new one', async () => {
    const refused = await world.svc.cli(['panic']);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
    expect(aliveOf(agentPids)).toEqual(agentPids);
    expect(await world.svc.health()).toBe('ok');

    const { control_pid: control, sidecar_pid: sidecar } = world.svc.runFile;
    const done = await world.svc.cli(['panic', '--yes', '--json']);
    expect(done).toMatchObject({ code: 0 });
    const found = report.parse(JSON.parse(done.stdout));
    expect(found).toMatchObject({
      sidecar_revoked: true,
      stopped: true,
      unsealed: [],
      not_done: [],
      start_again: 'svc up',
    });
    expect(found.sessions_ended).toHaveLength(1);
    expect(found.processes_ended).toEqual(expect.arrayContaining([...agentPids]));
    expect(aliveOf([agent.pid, ...agentPids, control, sidecar, world.svc.process.pid])).toEqual([]);
    expect(readdirSync(join(world.svc.home, 'sessions'))).toEqual([]);
    expect(existsSync(join(world.svc.home, 'sidecar', 'identity.json'))).toBe(false);
    const svc = await startAgain();
    expect(await isRevoked(svc, found.sidecar_id)).toBe(true);
    const session = await svc.session();
    await session.end();
    await svc.ok(['audit', 'verify']);
    // As a person reads it.
    const told = await svc.cli(['panic', '--yes']);
    expect(told).toMatchObject({ code: 0 });
    expect(told.stdout).toContain('What may still be out:');
    expect(told.stdout).toContain('stays valid at its service');
    expect(told.stdout).toContain('To start again: svc up');
  });

  it('does what it can if svc no longer runs, and says what it could not do', async () => {
    const { control_pid: control, sidecar_pid: sidecar } = world.svc.runFile;
    const exited = once(world.svc.process, 'exit');
    for (const pid of [world.svc.process.pid, control, sidecar]) kill(pid, 'SIGKILL');
    await exited;
    const done = await world.svc.cli(['panic', '--yes', '--json']);
    expect(done).toMatchObject({ code: 1 });
    const found = report.parse(JSON.parse(done.stdout));
    expect(found).toMatchObject({ sessions_ended: [], sidecar_revoked: false, unsealed: null });
    expect(found.not_done.join('\n')).toContain(`svc api DELETE /v1/sidecars/${found.sidecar_id}`);
    expect(aliveOf([agent.pid, ...agentPids])).toEqual([]);
    expect(readdirSync(join(world.svc.home, 'sessions'))).toEqual([]);
    expect(existsSync(join(world.svc.home, 'sidecar', 'identity.json'))).toBe(false);
    const svc = await startAgain();
    expect(await isRevoked(svc, found.sidecar_id)).toBe(false);
    await svc.ok(['api', 'DELETE', `/v1/sidecars/${found.sidecar_id}`]);
    expect(await isRevoked(svc, found.sidecar_id)).toBe(true);
  });

  it('kills what does not stop, such as a frozen supervisor', async () => {
    const { control_pid: control, sidecar_pid: sidecar } = world.svc.runFile;
    kill(world.svc.process.pid, 'SIGSTOP');
    const done = await world.svc.cli(['panic', '--yes', '--json']);
    const found = report.parse(JSON.parse(done.stdout));
    expect(found).toMatchObject({ sidecar_revoked: true, stopped: true });
    expect(found.not_done).toEqual([expect.stringContaining('svc did not stop by itself')]);
    expect(aliveOf([agent.pid, ...agentPids, control, sidecar, world.svc.process.pid])).toEqual([]);
  });
});
