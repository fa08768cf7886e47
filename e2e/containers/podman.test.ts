import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rootlessIsThere } from '../../tools/system_parts.mjs';
import { plantSecret } from '../support/planted_secret.ts';
import { type Finished, run, runOk } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';
import { type PodmanPlace, podmanOfRoot, podmanOfUser } from './podman_place.ts';

const HOST = 'api.example.test';
const TOKEN = plantSecret();
const HERE = describeContainers === describe && rootlessIsThere();

describe.skipIf(!HERE).each([
  ['root', podmanOfRoot],
  ['another user', podmanOfUser],
])('podman of %s', (_, makePlace) => {
  let bench: Bench;
  let place: PodmanPlace;
  let svc: Svc;
  let upstream: TlsUpstream;

  const svcThere = (...args: string[]): Promise<Finished> => {
    const [program, ...words] = place.svc;
    return run(program, [...words, ...args], { env: place.env, cwd: '/', timeoutMs: 150_000 });
  };
  const launch = (flags: readonly string[], command: readonly string[]): Promise<Finished> =>
    svcThere('launch', '--egress=sealed', '--no-default-mount', '--image', 'agent', ...flags, '--', ...command);
  const containers = async (): Promise<string> => (await place.podman('ps', '--all', '--quiet')).stdout;

  beforeAll(async () => {
    bench = await openBench();
    place = await makePlace();
    const archive = join(place.folder, 'image.tar');
    await bench.engine.docker('save', '--output', archive, bench.images.busybox);
    await runOk('chmod', ['644', archive]);
    for (const args of [
      ['load', '--input', archive],
      ['tag', bench.images.busybox, 'agent'],
    ]) {
      const done = await place.podman(...args);
      if (done.code !== 0) throw new Error(`podman ${args.join(' ')}: ${done.stderr}`);
    }
    const ca = await createTestCa();
    upstream = await startTlsUpstream(await ca.issue([HOST]));
    const roots = join(place.folder, 'ca.pem');
    writeFileSync(roots, ca.pem);
    svc = await Svc.up({
      home: place.env['SVC_HOME'] ?? '',
      command: [...place.svc, 'up'],
      env: place.env,
      upstreamCaFiles: [roots],
      resolve: [`${HOST}:127.0.0.1:${upstream.port}`],
    });
    await svc.secret('user/api', TOKEN);
    await svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/api' });
  });
  afterAll(async () => {
    await svc.stop();
    await upstream.close();
    await place.remove();
    bench.clear();
  });

  it('runs a sealed container whose requests get their credential, and leaves nothing', async () => {
    upstream.reset();
    const done = await launch([], ['/opt/clients/items', `https://${HOST}/items`]);
    expect({ code: done.code, stderr: done.code === 0 ? '' : done.stderr }).toEqual({ code: 0, stderr: '' });
    expect(upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
    expect((await launch([], ['sh', '-c', 'exit 42'])).code).toBe(42);
    expect(await containers()).toBe('');
  });

  it('keeps a detached one, with only loopback, until it is stopped', async () => {
    const started = await launch(['--detach', '--name', 'there'], ['sleep', '60']);
    expect({ code: started.code, stderr: started.code === 0 ? '' : started.stderr }).toEqual({ code: 0, stderr: '' });
    const pid = (await place.podman('inspect', '--format', '{{.State.Pid}}', 'there')).stdout.trim();
    expect(readFileSync(`/proc/${pid}/net/route`, 'utf8').trim().split('\n')).toHaveLength(1);
    expect((await svcThere('sessions', 'list')).stdout).toContain('podman agent');
    expect((await svcThere('sessions', 'stop', 'there')).code).toBe(0);
    expect(await containers()).toBe('');
  });

  it('runs a plan and keeps its outputs', async () => {
    const folder = join(place.folder, 'tmp', 'plan');
    mkdirSync(folder, { recursive: true });
    const fetch = `/opt/clients/items https://${HOST}/items && mkdir out && echo made > out/file && ln -s file out/link`;
    const plan = `version: 1
name: report
image: agent
steps:
  - id: fetch
    command: [/bin/sh, -c, '${fetch}']
    trust: { effect: read, hosts: [${HOST}], credential: 'vault://user/api' }
    collect: [{ path: /home/agent/out }]
`;
    writeFileSync(join(folder, 'plan.yaml'), plan);
    await runOk('chown', ['-R', '--reference', place.env['SVC_HOME'] ?? '', folder]);
    const file = join(folder, 'plan.yaml');
    const frozen = await svcThere('plan', 'freeze', file);
    expect({ code: frozen.code, stderr: frozen.code === 0 ? '' : frozen.stderr }).toEqual({ code: 0, stderr: '' });
    const done = await svcThere('plan', 'run', file, '--output', join(folder, 'kept'));
    expect({ code: done.code, stderr: done.code === 0 ? '' : done.stderr }).toEqual({ code: 0, stderr: '' });
    expect(readFileSync(join(folder, 'kept/fetch/out/file'), 'utf8')).toBe('made\n');
    expect(await containers()).toBe('');
  });
});
