import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ESCAPES } from '../sandbox/attempts.ts';
import { makeOutside } from '../sandbox/outside.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { kill } from '../support/process.ts';
import type { Finished } from '../support/program.ts';
import { startVirtualMachine, type VirtualMachine } from '../support/virtual_machine.ts';
import { waitFor } from '../support/wait_for.ts';
import { startWorld, type World } from '../support/world.ts';
import { expectNoWayOut } from './container_escapes.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';

// An engine whose containers run in a virtual machine, as Docker Desktop and colima have it: the proxy is reached over the standard
// streams of a companion container. The stand-in is in front of the engine of the tests.

const HOST = 'api.example.test';
const OTHER = 'other.example.test';
const TOKEN = plantSecret();
/** The user of the images' agent. */
const AGENT_ID = 1000;

const ask = (path: string): string => `curl -sS --max-time 20 https://${HOST}/${path}`;

describeContainers('an engine in a virtual machine', () => {
  let bench: Bench;
  let machine: VirtualMachine;
  let world: World;

  const launch = (flags: readonly string[], command: readonly string[]): Promise<Finished> =>
    bench.launch(world.svc, flags, command, { env: { DOCKER_HOST: machine.endpoint } });
  const containers = (): Promise<string[]> => bench.containersOf(world.svc);
  const untilNothingIsLeft = (): Promise<unknown> =>
    waitFor('the containers to be gone', async () => (await containers()).length === 0);

  beforeAll(async () => {
    bench = await openBench();
    machine = await startVirtualMachine(bench.engine.socket, join(bench.engine.folder, 'machine.sock'));
    world = await startWorld([HOST, OTHER], { env: { ...bench.engine.environment, DOCKER_HOST: machine.endpoint } });
    await world.svc.secret('user/api', TOKEN);
    await world.svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/api' });
  });
  afterAll(async () => {
    await world.stop();
    await machine.close();
    bench.clear();
  });

  it('gives a sealed container the proxy and nothing else, for whom 60 requests at once get their credential', async () => {
    world.upstream.reset();
    const each = `seq 60 | xargs -P 60 -I{} ${ask('{}')} -o /dev/null -w '%{http_code}\\n' | sort | uniq -c`;
    const other = `curl -s -o /dev/null -w '%{http_connect} ' https://${OTHER}/`;
    const done = await launch(['--egress=sealed'], ['sh', '-c', `${each}; ${other}; wc -l < /proc/net/route`]);
    expect(done.stdout.trim().split(/\s+/)).toEqual(['60', '200', '403', '1']);
    expect(world.upstream.requests).toHaveLength(60);
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
    await untilNothingIsLeft();
  });

  it('has no way out of such a container', async () => {
    const outside = await makeOutside(AGENT_ID);
    try {
      const flags = ['--egress=sealed', '--mount', `${outside.project}:${outside.project}`];
      expectNoWayOut(await launch(flags, ['python3', '-c', ESCAPES, outside.targets]));
    } finally {
      await outside.stop();
    }
  });

  it('serves an image without Node by the Node of another image', async () => {
    await bench.engine.docker('tag', bench.images.debianBase, 'node:24-slim');
    const flags = ['--egress=sealed', '--image', bench.images.busybox];
    // The client keeps its half open, so that the request is not of somebody who has gone.
    const head = `CONNECT ${HOST}:443 HTTP/1.1\\r\\nHost: ${HOST}\\r\\n\\r\\n`;
    const connect = `cd /tmp && mkfifo kept && exec 3<>kept && printf '${head}' >&3 && nc -w 60 127.0.0.1 7421 <&3`;
    const done = await launch(flags, ['sh', '-c', connect]);
    expect({ ...done, stdout: done.stdout.split('\r\n')[0] }).toMatchObject({
      stdout: 'HTTP/1.1 407 Proxy Authentication Required',
    });
    await untilNothingIsLeft();
  });

  it('opens the stream again when it is cut, when the companion is killed, and after the sidecar was killed; meanwhile nothing is reached', async () => {
    world.upstream.reset();
    const started = await launch(['--egress=sealed', '--detach', '--name', 'moved'], ['sleep', '600']);
    expect(started).toMatchObject({ code: 0 });
    const { engine } = bench;
    const askInside = (path: string): Promise<Finished> =>
      engine.run(['exec', 'moved', '/usr/local/bin/svc-run-with-proxy-ca', '--', 'sh', '-c', ask(path)]);
    const comesBack = (path: string): Promise<unknown> =>
      waitFor(`an answer to ${path}`, async () => (await askInside(path)).code === 0);
    await comesBack('first');
    const companion = async (): Promise<string> =>
      engine.docker('ps', '-q', '--filter', 'name=svc-companion-', '--filter', 'status=running');
    // The session's token is in what it carries.
    expect(await engine.docker('inspect', '--format', '{{.HostConfig.LogConfig.Type}}', await companion())).toBe(
      'none',
    );
    machine.cutStreams();
    await comesBack('after-the-cut');
    await engine.docker('kill', await companion());
    await comesBack('after-the-kill');
    kill(world.svc.runFile.sidecar_pid, 'SIGKILL');
    // The companion ends with its stream, and with it the only port.
    await waitFor('the companion to end', async () => (await companion()) === '');
    await world.svc.comesBack();
    await comesBack('after-the-restart');
    const shown = await engine.docker('inspect', '--format', '{{.HostConfig.NetworkMode}} {{json .Mounts}}', 'moved');
    expect(shown).toMatch(/^none /);
    await world.svc.ok(['sessions', 'stop', 'moved'], { env: engine.environment });
    expect(await containers()).toEqual([]);
  });
});
