import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeContainers } from '../containers/container_world.ts';
import { IS_FULL, ONLY_FULL } from '../support/full_counts.ts';
import type { Finished } from '../support/program.ts';
import { waitFor } from '../support/wait_for.ts';
import { type ImageBench, openImageBench } from './agent_container.ts';

const RUN_STEP = '/usr/local/bin/svc-run-step';
const sentinel = randomBytes(32).toString('hex');

describeContainers.each(['debian', 'busybox'] as const)('steps in a held container (%s)', (layout) => {
  let bench: ImageBench;
  let id: string;
  const startHeld = async (before?: string): Promise<string> =>
    bench.startDetached(bench.images[layout], ['--hold'], {
      flags: ['--env', `SVC_IMAGE_SENTINEL=${sentinel}`],
      ...(before !== undefined && { before }),
    });
  const step = (command: readonly string[], env: Record<string, string> = {}): Promise<Finished> => {
    const all = { SVC_STEP_SENTINEL: sentinel, SVC_TOKEN: 'planted-token', ...env };
    const flags = Object.entries(all).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    return bench.exec(id, flags, [RUN_STEP, ...command]);
  };
  beforeAll(async () => {
    bench = await openImageBench();
    id = await startHeld();
    await waitFor(
      'the container to be ready for steps',
      async () => (await bench.engine.docker('logs', id)) === 'ready for steps',
      60_000,
    );
  });
  afterAll(() => bench.clear());

  it('runs a step as the agent, with its proxy and CA, but without token and sentinel', async () => {
    const done = await step(
      ['--', 'sh', '-c', 'id -u; env; cat /run/svc/image-sentinel /proc/1/environ; ls /proc/self/fd'],
      { HTTPS_PROXY: 'its-own' },
    );
    expect(done.stdout).toMatch(/^1000\n/);
    expect(done.stdout).toContain('HTTPS_PROXY=its-own\n');
    expect(done.stdout).toContain('SSL_CERT_FILE=/etc/svc/trust/bundle.pem\n');
    expect(`${done.stdout}${done.stderr}`).not.toMatch(
      new RegExp(`${sentinel}|planted-token|SVC_(TOKEN|STEP|IMAGE|KEPT)`),
    );
    expect(done.stdout).toMatch(/\n0\n1\n2\n3\n$/);
  });

  it('passes arguments without a shell', async () => {
    const odd = ['a b', '; id', '$(id)', '`id`', '-n', '', 'two\nlines', '*'];
    expect((await step(['--', 'printf', '<%s>', ...odd])).stdout).toBe(odd.map((word) => `<${word}>`).join(''));
  });

  it('refuses a step if the sentinel is a wrong one, a short one or none', async () => {
    const given = ['0'.repeat(64), sentinel.slice(0, 31), ''];
    const each = given.map((one) => `SVC_STEP_SENTINEL='${one}' ${RUN_STEP} -- echo 'it ran'; echo "code $?"`);
    const done = await bench.exec(id, [], ['sh', '-c', each.join('\n')]);
    expect(done.stdout).toBe('code 78\n'.repeat(given.length));
  });

  // The programs are the same in each layout, and so is what they ask of their environment.
  const onlyOnce = layout === 'debian' ? [''] : ONLY_FULL;
  it.each(onlyOnce)('refuses a step in a container that holds no plan%s', async () => {
    const other = await bench.startDetached(bench.images[layout], ['--', 'sleep', '600']);
    const done = await bench.exec(
      other,
      ['--env', `SVC_STEP_SENTINEL=${sentinel}`],
      [RUN_STEP, '--', 'echo', 'it ran'],
    );
    expect(done).toMatchObject({ code: 78, stdout: '' });
  });

  it('refuses to run for the agent user', async () => {
    const env = ['--env', `SVC_STEP_SENTINEL=${sentinel}`];
    const done = await bench.engine.run(['exec', '--user', '1000', ...env, id, RUN_STEP, '--', 'echo', 'it ran']);
    expect(done).toMatchObject({ code: 10, stdout: '' });
  });

  it('ends with the code of the command; with 127 if it does not exist, 126 if it cannot be executed, 2 without one', async () => {
    expect((await step(['--', 'sh', '-c', 'exit 42'])).code).toBe(42);
    const each = ['no-such-command', '/etc/passwd', ''].map((command) => `${RUN_STEP} -- ${command}; echo "code $?"`);
    const environment = ['--env', `SVC_STEP_SENTINEL=${sentinel}`];
    const done = await bench.exec(id, environment, ['sh', '-c', each.join('\n')]);
    expect(done.stdout).toBe('code 127\ncode 126\ncode 2\n');
  });

  it('ends what an earlier step left running', async () => {
    await step([
      '--',
      'sh',
      '-c',
      '(setsid sleep 4242 >/dev/null 2>&1 &) ; trap "" TERM HUP; (while :; do sleep 4242; done) >/dev/null 2>&1 &',
    ]);
    expect(await processesOf(bench, id)).toContain('4242');
    expect((await step(['--', 'true'])).code).toBe(0);
    expect(await processesOf(bench, id)).not.toContain('4242');
  });

  it('ends what a step left running, on request', async () => {
    await step(['--', 'sh', '-c', 'setsid sleep 4243 >/dev/null 2>&1 &']);
    expect(await processesOf(bench, id)).toContain('4243');
    expect((await step(['--sweep'])).code).toBe(0);
    expect(await processesOf(bench, id)).not.toContain('4243');
  });

  it('no file of a step changes what root runs for the next one', async () => {
    const places =
      '/usr/local/bin /usr/local/sbin /usr/bin /bin /usr/local/share/svc /run/svc /etc/svc /etc/svc/trust /etc /run /';
    const plant = `for folder in ${places}; do if (: >"$folder/planted") 2>/dev/null; then echo "$folder"; fi; done
      for file in /run/svc/agent /etc/passwd /etc/group /etc/svc/trust/bundle.pem /usr/local/share/svc/guard.sh; do [ ! -w "$file" ] || echo "$file"; done
      printf '#!/bin/sh\\necho planted >/tmp/by-root\\n' >"$HOME/ls"; cp "$HOME/ls" "$HOME/setpriv"; chmod +x "$HOME/ls" "$HOME/setpriv"`;
    expect((await step(['--', 'sh', '-c', plant])).stdout).toBe('');
    const odd = {
      PATH: '/home/agent:/usr/bin:/bin',
      ENV: '/home/agent/ls',
      BASH_ENV: '/home/agent/ls',
      LD_DEBUG: 'all',
    };
    expect((await step(['--', 'sh', '-c', 'id -u; [ ! -e /tmp/by-root ]'], odd)).code).toBe(0);
  });

  const unsafe = [
    ['a folder by its group', 'chgrp agent /usr/local/share; chmod g+w /usr/local/share'],
    ['the users', 'chmod go+w /etc/passwd'],
    ['a program folder', 'chown -R agent /usr/local/bin'],
    ['the parts', 'chown agent /usr/local/share/svc/guard.sh'],
  ] as const;
  // In each layout another one.
  const turn = layout === 'debian' ? 0 : 1;
  it.each(IS_FULL ? unsafe : unsafe.slice(turn, turn + 1))(
    'does not start a plan container in which the agent may change %s',
    async (_what, before) => {
      const other = await startHeld(before);
      expect(await bench.engine.docker('wait', other)).toBe('17');
      const check = await bench.start(bench.images[layout], ['--check'], { before, ca: null });
      expect(check.stdout).toMatch(/^steps=\/.* may be changed by the agent user/m);
    },
  );

  it.each(onlyOnce)('ends at once when asked to%s', async () => {
    const other = await startHeld();
    await waitFor('the container to be ready', async () => (await bench.engine.docker('logs', other)) !== '');
    await bench.engine.docker('kill', '--signal', 'TERM', other);
    expect(await bench.engine.docker('wait', other)).toBe('0');
  });
});

/** The command lines of all processes of a container. */
async function processesOf(bench: ImageBench, id: string): Promise<string> {
  return bench.engine.docker('top', id);
}
