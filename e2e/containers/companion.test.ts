import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rootlessIsThere } from '../../tools/system_parts.mjs';
import { ESCAPES } from '../sandbox/attempts.ts';
import { makeOutside, type Outside } from '../sandbox/outside.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { kill } from '../support/process.ts';
import { type Finished, run } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { expectNoWayOut } from './container_escapes.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';
import { makePerson, type Person } from './other_user.ts';
import { asUser, SVC_DIRECTLY } from './run_as.ts';

// svc as a user who may use root's engine, as those in the group `docker` may, and who may not enter a container's network.

const HOST = 'api.example.test';
const TOKEN = plantSecret();
const HERE = describeContainers === describe && rootlessIsThere();
/** The user of the images' agent, to whom the project belongs. */
const AGENT_ID = 1000;

const ask = (path: string): string => `curl -sS --max-time 5 https://${HOST}/${path}`;

/** The engine mounts files of svc, so they have to be where it sees them. */
function ownCommand({ uid, groups }: Person): readonly [string, ...string[]] {
  return [...asUser(uid, groups), ...SVC_DIRECTLY];
}

describe.skipIf(!HERE)('a user who may use the engine of root', () => {
  let bench: Bench;
  let someone: Person;
  let svc: Svc;
  let upstream: TlsUpstream;
  let outside: Outside;

  const launch = (flags: readonly string[], command: readonly string[]): Promise<Finished> => {
    const [program, ...words] = ownCommand(someone);
    const sealed = ['launch', '--egress=sealed', '--no-default-mount', '--image', bench.images.debian];
    const all = [...words, ...sealed, ...flags, '--', ...command];
    return run(program, all, { env: someone.env, cwd: '/' });
  };
  const untilNothingIsLeft = (): Promise<unknown> =>
    waitFor('the containers to be gone', async () => (await bench.containersOf(svc)).length === 0);

  beforeAll(async () => {
    bench = await openBench();
    const { gid } = statSync(bench.engine.socket);
    someone = await makePerson(join(bench.engine.folder, 'bin'), () => bench.engine.endpoint, [gid]);
    const ca = await createTestCa();
    upstream = await startTlsUpstream(await ca.issue([HOST]));
    const roots = join(someone.folder, 'ca.pem');
    writeFileSync(roots, ca.pem);
    svc = await Svc.up({
      home: join(someone.folder, 'home'),
      command: [...ownCommand(someone), 'up'],
      env: someone.env,
      upstreamCaFiles: [roots],
      resolve: [`${HOST}:127.0.0.1:${upstream.port}`],
    });
    await svc.secret('user/api', TOKEN);
    await svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/api' });
    outside = await makeOutside(AGENT_ID);
  });
  afterAll(async () => {
    await svc.stop();
    await Promise.all([upstream.close(), outside.stop()]);
    rmSync(someone.folder, { recursive: true, force: true });
    bench.clear();
  });

  it('gets a sealed container whose requests get their credential, also after the sidecar was killed', async () => {
    upstream.reset();
    const again = `until ${ask('after')} -f; do sleep 0.2; done`;
    const done = launch([], ['sh', '-c', `${ask('before')} && while ${ask('alive')} -f; do sleep 0.2; done; ${again}`]);
    await waitFor('the first requests', () => upstream.requests.some(({ target }) => target === '/alive'));
    expect(await bench.containersOf(svc)).toHaveLength(2);
    kill(svc.runFile.sidecar_pid, 'SIGKILL');
    await svc.comesBack();
    expect((await done).code).toBe(0);
    expect(upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
    expect(upstream.last().target).toBe('/after');
    await untilNothingIsLeft();
  });

  it('has no way out of such a container', async () => {
    const mount = ['--mount', `${outside.project}:${outside.project}`];
    const done = await launch(mount, ['python3', '-c', ESCAPES, outside.targets]);
    expectNoWayOut(done);
    await untilNothingIsLeft();
  });
});
