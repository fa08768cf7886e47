import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { auditVerification } from '../../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload } from '../../shared/wire/channel.ts';
import { outcome } from '../runtimes/hosted_users.ts';
import { parseReply } from '../runtimes/in_process.ts';
import { ROOT, runSvc, startLibsqlServer } from '../runtimes/programs.ts';
import { TestSidecar } from '../runtimes/sidecar_client.ts';
import type { StartHosted } from '../team/team_runtimes.ts';
import { type HostedPerson, HostedWorker } from './hosted_worker.ts';

const VALUE = 'value-before-the-backup';
const PERSON = 'restored';
const runProgram = promisify(execFile);

/** The commands of docs/deploy.md that load a dump into an empty server: what `node -e` gets there. */
async function readRestoreScript(dump: string): Promise<string> {
  const guide = await readFile(join(ROOT, 'docs/deploy.md'), 'utf8');
  const [, script = ''] = /node --input-type=module -e "\n([^"]+executeMultiple[^"]+)"/.exec(guide) ?? [];
  return script.replace("'svc.sql'", JSON.stringify(dump));
}

/** The value of a secret that a new sidecar of this person gets. */
async function releaseSecret(worker: HostedWorker, { program }: HostedPerson): Promise<unknown> {
  const sidecar = await TestSidecar.make((path, init) => worker.send(path, init));
  await sidecar.enrol(await program.bearer());
  const reference = { owner: 'personal', path: 'user/kept' };
  const body = { request_id: crypto.randomUUID(), reference, host: 'db.example.test', reason: 'a drill' };
  const reply = await sidecar.call('POST', '/v1/sidecar/unsealed', { body });
  const { credentials } = await sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
  return sidecar.unseal(credentials[0]?.sealed ?? '');
}

/** A drill: sqld is dumped while workers serve, and restored into an empty one, as docs/deploy.md says. */
export function describeRestore(workerOf: () => HostedWorker, start: StartHosted): void {
  describe('a dump of the database server', () => {
    const stops: (() => Promise<unknown>)[] = [];
    afterAll(async () => {
      for (const stop of stops.toReversed()) await stop();
    });

    test('is restored into an empty server: people sign in, the vault opens, and the log verifies', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'svc-dump-'));
      stops.push(() => rm(folder, { recursive: true, force: true }));
      const worker = workerOf();
      const { world } = worker;
      const { me, program } = await worker.openPerson((await worker.signIn(PERSON)).browser, PERSON);
      expect(await outcome(program.call('POST', '/v1/secrets', { path: 'user/kept', value: VALUE }))).toBe(201);
      const dump = join(folder, 'svc.sql');
      const dumped = await fetch(`${world.cluster.url}/dump`);
      await writeFile(dump, await dumped.text(), { mode: 0o600 });
      expect(await outcome(program.call('POST', '/v1/secrets', { path: 'user/later', value: VALUE }))).toBe(201);

      const server = await startLibsqlServer();
      stops.push(() => server.stop());
      const { SVC_DATABASE_REPLICA_URL: _, ...ofWorker } = world.settings;
      const settings = { ...ofWorker, SVC_DATABASE_URL: server.url };
      const args = ['--input-type=module', '-e', await readRestoreScript(dump)];
      await runProgram('node', args, { cwd: ROOT, env: { PATH: process.env['PATH'], SVC_DATABASE_URL: server.url } });
      expect(await runSvc(folder, ['db', 'status'], settings)).toMatchObject({ exitCode: 0 });

      const restored = await HostedWorker.start({ ...world, settings }, start);
      stops.push(restored.program.stop);
      const signedIn = await restored.signIn(PERSON);
      expect(signedIn.me.id).toBe(me.id);
      const person = await restored.openPerson(signedIn.browser, PERSON);
      const listed = await person.program.call('GET', '/v1/secrets');
      expect(await listed.json()).toMatchObject({ items: [{ path: 'user/kept' }] });
      expect(await releaseSecret(restored, person)).toEqual({ value: VALUE });
      const verified = person.program.call('GET', '/v1/audit-events/verify');
      expect(await parseReply(auditVerification, verified)).toMatchObject({ ok: true, first_break: null });
    });
  });
}
