import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleOf } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { type ContainerWorld, describeContainers, startBoundContainerWorld } from './container_world.ts';
import { PlanFolder, shellStep } from './plan_folder.ts';

const HOST = 'api.example.test';
const OTHER = 'other.example.test';
const TOKEN = plantSecret();
const TRUST = { effect: 'read', hosts: [HOST] };
/** The proxy's own answer to a CONNECT to the host in $1, with the user and password in $2. */
const CONNECT = `answer() { curl -s -o /dev/null -w '%{http_connect} ' --max-time 10 --proxy "http://$2@127.0.0.1:7421" "https://$1/" || true; }`;
const OWN = `own=$(echo "$HTTPS_PROXY" | sed 's,http://\\(.*\\)@.*,\\1,')`;
const ENDLESS_FORK = ['import os', 'while True:', '  try: os.fork()', '  except OSError: pass'].join('\n');
let world: ContainerWorld;

describeContainers('a hostile step', () => {
  beforeAll(async () => {
    world = await startBoundContainerWorld([HOST, OTHER], TOKEN);
  });
  afterAll(() => world.stop());

  it('is refused with other hosts, other sessions, made-up tokens, Host headers or an expired scope', async () => {
    world.upstream.reset();
    const other = await world.svc.session();
    const folder = new PlanFolder(world, 'reach');
    await folder.freeze([
      shellStep(
        'first',
        `${CONNECT}; ${OWN}; echo "$own" > /home/agent/scope
         answer ${OTHER} "$own"; answer ${OTHER}. "$own"; answer OTHER.example.test "$own"
         answer ${HOST} "\${own%%:*}:svc_session_${'x'.repeat(43)}"; answer ${HOST} "${other.sessionId}:\${own#*:}"
         answer ${HOST} "$own"; curl -s -o /dev/null -w '%{http_code}' -H 'Host: ${OTHER}' https://${HOST}/host`,
        { trust: TRUST },
      ),
      shellStep('second', `${CONNECT}; answer ${HOST} "$(cat /home/agent/scope)"`, {
        trust: { effect: 'read', hosts: [OTHER] },
      }),
      shellStep(
        'third',
        `${CONNECT}; answer ${HOST} "$(cat /home/agent/scope)"; answer ${OTHER} "$(cat /home/agent/scope)"`,
      ),
    ]);
    const run = await folder.run();
    expect(run.said).toMatch(/403 403 403 407 407 200 421step/);
    expect(run.said).toMatch(/407 step 2/);
    expect(run.said).toMatch(/407 407 step 3/);
    expect(world.upstream.requests.map(({ target }) => target)).toEqual(['/']);
    const denied = (await world.svc.eventsOf({ sessionId: run.session_id })).filter(
      ({ type }) => type === 'sandbox.proxy.trust_denied',
    );
    expect(
      denied.map(({ data }) => [data['svc.proxy.upstream.host'], data['svc.proxy.reason'], data['svc.step.id']]),
    ).toEqual(denied.map(() => [OTHER, 'step_scope_host_denied', 'first']));
    const counts = denied.map(({ data }) => Number(data['svc.proxy.count'] ?? 1));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(3);
    await other.end();
  });

  describe('in front of others', () => {
    let run: Awaited<ReturnType<PlanFolder['run']>>;
    beforeAll(async () => {
      const places = [
        '/usr/local/bin',
        '/usr/bin',
        '/bin',
        '/etc/svc',
        '/etc/svc/trust',
        '/run/svc',
        '/run',
        '/usr/local/share/svc',
        '/etc',
        '/',
      ];
      const folder = new PlanFolder(world, 'left');
      await folder.freeze([
        shellStep(
          'leave',
          `setsid sh -c 'trap "" HUP INT TERM; while :; do echo alive > /home/agent/alive; sleep 0.05; done' >/dev/null 2>&1 </dev/null &
           (setsid sleep 1000 &) ; until test -s /home/agent/alive; do sleep 0.05; done`,
        ),
        shellStep('look', 'rm /home/agent/alive; sleep 0.5; ! test -e /home/agent/alive; ps -eo user= | grep -c agent'),
        shellStep(
          'plant',
          `for place in ${places.join(' ')}; do touch $place/planted 2>/dev/null && echo "WROTE $place"; done
           cat /run/svc/image-sentinel 2>/dev/null && echo READ; kill -9 1 2>/dev/null && echo KILLED
           printf '#!/bin/sh\\nid -u > /home/agent/pwned\\n' > /home/agent/svc-run-step; chmod 755 /home/agent/svc-run-step
           echo 'id -u > /home/agent/pwned' > /home/agent/.profile; cp /home/agent/.profile /home/agent/.shrc
           svc-run-step -- id && echo RAN; SVC_STEP_SENTINEL=$(printf '%043d' 0) svc-run-step --sweep && echo SWEPT; true`,
        ),
        shellStep('after', 'test -e /home/agent/pwned && cat /home/agent/pwned; id -u'),
        shellStep('fill', 'dd if=/dev/zero of=/dev/shm/fill bs=1M 2>/dev/null; mkdir -p /tmp/svc /tmp/.svc-new; true'),
        shellStep('fetch', `curl -s https://${HOST}/after`, { trust: TRUST }),
      ]);
      world.upstream.reset();
      run = await folder.run('--keep-going');
    });
    const outcomesOf = (...ids: string[]): string[] =>
      run.steps.filter(({ id }) => ids.includes(id)).map(({ outcome }) => outcome);

    it("that fills shared memory and occupies names in /tmp does not block the next step's scope", () => {
      expect(outcomesOf('fill', 'fetch')).toEqual(['done', 'done']);
      expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
    });

    it('leaves no process behind, even with daemons, ignored signals and a new session', () => {
      expect(outcomesOf('leave', 'look')).toEqual(['done', 'done']);
      // The shell, ps and grep.
      expect(run.said).toMatch(/^3$/m);
    });

    it("cannot write anything that a later step's start runs as root", () => {
      expect(outcomesOf('plant', 'after')).toEqual(['done', 'done']);
      expect(run.said).not.toMatch(/WROTE|READ|KILLED|RAN|SWEPT/);
      expect(run.said).toMatch(/^1000$/m);
      expect(run.said).not.toMatch(/^0$/m);
    });
  });

  it('a fork bomb ends with its step, and the next step runs', async () => {
    const folder = new PlanFolder(world, 'bomb');
    await folder.freeze([
      // No process of it ends, so nothing else gets a process id, nor much time.
      shellStep('bomb', `exec python3 -c '${ENDLESS_FORK}'`, { timeout_seconds: 3 }),
      shellStep('after', 'ps -eo user= | grep -c agent'),
    ]);
    const run = await folder.run('--keep-going');
    expect(run.steps.map(({ outcome }) => outcome)).toEqual(['timed_out', 'done']);
    expect(run.said).toMatch(/^3$/m);
    expect(await world.bench.containersOf(world.svc)).toEqual([]);
  });

  describe('that exports', () => {
    // The unit tests of sandbox/plan/collected_tree.ts have every case.
    const all = [
      {
        id: 'link',
        script: 'ln -s /etc/shadow link',
        path: '/home/agent/link',
        problem: 'is a symbolic link or lies behind one',
      },
      {
        id: 'out',
        script: 'mkdir o && ln -s /etc/passwd o/x',
        path: '/home/agent/o',
        problem: 'is a link that leads elsewhere',
      },
      { id: 'pipe', script: 'mkfifo pipe', path: '/home/agent/pipe', problem: 'is a device, a pipe or a socket' },
      { id: 'roots', script: 'true', path: '/etc/shadow', problem: 'is not readable for the user' },
      {
        id: 'large',
        script: 'mkdir l && truncate -s 2G l/big',
        path: '/home/agent/l',
        problem: 'has more than 1073741824 bytes',
      },
      {
        id: 'behind',
        script: 'ln -s / root',
        path: '/home/agent/root/etc/shadow',
        problem: 'is a symbolic link or lies behind one',
      },
      {
        id: 'up',
        script: 'mkdir -p u/a && ln -s ../../x u/a/x',
        path: '/home/agent/u',
        problem: 'is a link that leads elsewhere',
      },
      { id: 'none', script: 'true', path: '/home/agent/none', problem: 'is not there' },
    ];
    const cases = sampleOf(all, 5);
    const long = 'n'.repeat(180);
    let kept: string;
    let run: Awaited<ReturnType<PlanFolder['run']>>;
    beforeAll(async () => {
      const folder = new PlanFolder(world, 'collect');
      await folder.freeze([
        ...cases.map(({ id, script, path }) => shellStep(id, script, { collect: [{ path, as: 'out' }] })),
        shellStep(
          'make',
          `mkdir -p out/sub && cd out && echo text > sub/a && ln sub/a sub/hard && ln -s ../sub/a sub/soft && chmod 4755 sub/a && echo ${long} > ${long} && printf x > 'ü b'`,
          { collect: [{ path: '/home/agent/out', as: 'tree' }] },
        ),
      ]);
      run = await folder.run('--output', 'kept', '--keep-going');
      kept = join(folder.path, 'kept');
    });

    it('cannot export files of others, links, devices or too much data', () => {
      expect(run.steps.slice(0, -1)).toMatchObject(
        cases.map(({ id, problem }) => ({
          id,
          outcome: 'failed',
          exit_code: 0,
          problem: expect.stringContaining(problem),
        })),
      );
      expect(readdirSync(kept)).toEqual(['make']);
    });

    it('exports folders, links within them and executables, but no owner and no set-user-id bit', () => {
      expect(run.steps.at(-1)).toMatchObject({ outcome: 'done', problem: null });
      const tree = join(kept, 'make', 'tree');
      expect(readdirSync(tree, { recursive: true, encoding: 'utf8' }).toSorted()).toEqual([
        long,
        'sub',
        'sub/a',
        'sub/hard',
        'sub/soft',
        'ü b',
      ]);
      expect(statSync(join(tree, 'sub', 'a')).mode & 0o7000).toBe(0);
      expect(readFileSync(join(tree, 'sub', 'soft'), 'utf8')).toBe('text\n');
      expect(readFileSync(join(tree, long), 'utf8')).toBe(`${long}\n`);
    });
  });
});
