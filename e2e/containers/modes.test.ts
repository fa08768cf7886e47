import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { variantOf } from '../support/container_images.ts';
import { ONLY_FULL, sampleOf } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import type { Event } from '../support/svc.ts';
import { type ContainerWorld, describeContainers, startBoundContainerWorld } from './container_world.ts';

// Specification section 1, Sandbox launch and proxy policy; section 6, `sandbox.proxy.disabled`; section 7.

const HOST = 'api.example.test';
const TOKEN = plantSecret();
const VARIABLES = [
  'sh',
  '-c',
  'id -un; env | grep -E "^(https?_proxy|HTTPS?_PROXY|NO_PROXY|SVC_.*)=" | sort; ls /etc/svc/proxy',
];
const PROXIED = /^HTTPS_PROXY=http:\/\/ses_[0-9a-z]{26}:[^@]+@127\.0\.0\.1:7421\/?$/m;
let world: ContainerWorld;

/** The events of `sandbox.proxy.disabled` that an action adds. */
async function listDisabled(action: () => Promise<unknown>): Promise<Event['data'][]> {
  const before = new Set((await world.svc.events()).map(({ id }) => id));
  await action();
  const added = (await world.svc.events()).filter(({ id }) => !before.has(id));
  return added.filter(({ type }) => type === 'sandbox.proxy.disabled').map(({ data }) => data);
}

/** Events of the same moment have no defined order. */
function byReason(order: readonly string[]): (a: Event['data'], b: Event['data']) => number {
  const place = (data: Event['data']): number => order.indexOf(String(data['svc.proxy.reason']));
  return (a, b) => place(a) - place(b);
}

/** How many containers the engine reports as created since a moment. */
async function containersMadeSince(seconds: number): Promise<number> {
  const window = ['--since', String(seconds), '--until', String(Math.floor(Date.now() / 1000) + 1)];
  const filter = ['--filter', 'event=start', '--filter', 'type=container'];
  const lines = await world.bench.engine.docker(
    'events',
    ...window,
    ...filter,
    '--format',
    '{{json .Actor.Attributes}}',
  );
  return lines.split('\n').filter((line) => line.includes('modes-test')).length;
}

/** What it is called, flags, and variables. */
type Way = readonly [string, readonly string[], Readonly<Record<string, string>>];

describeContainers('the proxy of a launch', () => {
  beforeAll(async () => {
    world = await startBoundContainerWorld([HOST], TOKEN);
  });
  afterAll(() => world.stop());

  const ways: Way[] = [
    // By default it is used in nearly every other launch of the tests.
    ['when the flag says on and the environment off', ['--sandbox-proxy=on'], { SVC_SANDBOX_PROXY: 'off' }],
    ['by default', [], {}],
    ['with auto', ['--sandbox-proxy=auto'], {}],
    ['with on', ['--sandbox-proxy=on'], {}],
    ['with on from the environment', [], { SVC_SANDBOX_PROXY: 'on' }],
  ];
  it.each(sampleOf(ways, 1))('is used %s, through the variables of the specification', async (_, flags, env) => {
    const events = await listDisabled(async () => {
      const done = await world.launch(flags, VARIABLES, { env });
      expect(done.code).toBe(0);
      expect(done.stdout).toMatch(/^agent\n/);
      expect(done.stdout).toMatch(PROXIED);
      for (const name of [
        'HTTP_PROXY',
        'NO_PROXY',
        'https_proxy',
        'http_proxy',
        'SVC_URL',
        'SVC_TOKEN',
        'SVC_SESSION_ID',
      ]) {
        expect(done.stdout).toMatch(new RegExp(`^${name}=.`, 'm'));
      }
      expect(done.stdout).toMatch(/^ca\.pem$/m);
    });
    expect(events).toEqual([]);
  });

  const waysOff: Way[] = [
    ['by the environment', [], { SVC_SANDBOX_PROXY: 'off' }],
    ['when the flag says off and the environment on', ['--sandbox-proxy=off'], { SVC_SANDBOX_PROXY: 'on' }],
    ['by the flag', ['--sandbox-proxy=off'], {}],
  ];
  it.each(sampleOf(waysOff, 1))(
    'is not used if it is switched off %s, which is recorded as user_opt_out',
    async (_, flags, env) => {
      const events = await listDisabled(async () => {
        const done = await world.launch(
          [...flags, '--image', world.bench.images.debianBase],
          ['sh', '-c', 'id -un; env'],
          { env },
        );
        expect(done.code).toBe(0);
        expect(done.stdout).toMatch(/^root\n/);
        expect(done.stdout).not.toMatch(/^(https?_proxy|SVC_[A-Z_]+)=/im);
      });
      expect(events).toEqual([
        expect.objectContaining({
          'svc.proxy.reason': 'user_opt_out',
          'svc.sandbox.mode': 'docker',
          'svc.sandbox.image': world.bench.images.debianBase,
        }),
      ]);
    },
  );

  it('is not used in an unsupported mode, with a warning and unsupported_sandbox_mode', async () => {
    const events = await listDisabled(async () => {
      const done = await world.svc.cli(['launch', '--sandbox=none', '--', 'sh', '-c', 'echo ran; env']);
      expect(done.code).toBe(0);
      expect(done.stdout).toMatch(/^ran\n/);
      expect(done.stdout).not.toMatch(/^(HTTPS_PROXY|SVC_TOKEN)=/m);
      expect(done.stderr).toContain('not supported');
    });
    expect(events).toEqual([
      expect.objectContaining({ 'svc.proxy.reason': 'unsupported_sandbox_mode', 'svc.sandbox.mode': 'none' }),
    ]);
  });

  it('cannot be required with --sandbox=none: unsupported_sandbox_mode and preflight_failed, and nothing runs', async () => {
    const events = await listDisabled(async () => {
      const done = await world.svc.cli(['launch', '--sandbox=none', '--sandbox-proxy=on', '--', 'echo', 'ran']);
      expect(done.code).toBe(125);
      expect(done.stdout).toBe('');
      expect(done.stderr).toContain('--sandbox-proxy=off');
    });
    const reasons = ['unsupported_sandbox_mode', 'preflight_failed'];
    expect(events.toSorted(byReason(reasons))).toEqual(
      reasons.map((reason) => expect.objectContaining({ 'svc.proxy.reason': reason, 'svc.sandbox.mode': 'none' })),
    );
  });

  const unknown: [string, Record<string, string>, string][] = [
    ['--sandbox-proxy=maybe', {}, 'auto, on or off'],
    [
      '--relay',
      { SVC_SANDBOX_PROXY_BOOTSTRAP: '1' },
      'SVC_SANDBOX_PROXY_BOOTSTRAP is set, but this setting was removed',
    ],
    ['--sandbox=chroot', {}, 'docker, podman or none'],
    ['--egress=closed', {}, 'open, sealed or sealed,public'],
    ['--relay', { SVC_SANDBOX_PROXY: 'sometimes' }, 'SVC_SANDBOX_PROXY'],
    ['--relay', { SVC_SANDBOX_PROXY_BOOTSTRAP: '' }, 'SVC_SANDBOX_PROXY'],
    ['--sandbox-proxy=', {}, 'auto, on or off'],
    ['--sandbox-proxy=ON', {}, 'auto, on or off'],
  ];
  it.each(sampleOf(unknown, 2))(
    'refuses %s %j, says what to write instead, and records nothing',
    async (flag, env, fix) => {
      const events = await listDisabled(async () => {
        const done = await world.launch([flag], ['echo', 'ran'], { env });
        expect(done.code).toBe(2);
        expect(done.stdout).toBe('');
        expect(done.stderr).toContain(fix);
      });
      expect(events).toEqual([]);
    },
  );

  describe('with an image that does not meet the contract', () => {
    const broken: readonly (readonly [string, (world: ContainerWorld) => Promise<string>, RegExp])[] = [
      // images/image_commands.test.ts has the others, as svc image check says them.
      ['has none of the helpers', async ({ bench }) => bench.images.debianBase, /svc-install-proxy-ca/],
      ['lacks one helper', lacking('svc-run-with-proxy-ca'), /svc-run-with-proxy-ca/],
      [
        'runs as a user that is not there',
        ({ bench }) => variantOf(bench.engine, bench.images.debian, 'USER nobody-here'),
        /nobody-here/,
      ],
      [
        'has no trust store',
        ({ bench }) => variantOf(bench.engine, bench.images.busybox, 'USER root', 'RUN rm -r /etc/ssl', 'USER agent'),
        /trust store/,
      ],
      [
        'has no /etc/svc/proxy',
        ({ bench }) => variantOf(bench.engine, bench.images.debian, 'USER root', 'RUN rm -r /etc/svc', 'USER agent'),
        /\/etc\/svc\/proxy/,
      ],
      [
        'has no shell',
        ({ bench }) =>
          variantOf(
            bench.engine,
            bench.images.busybox,
            'USER root',
            'RUN ["/bin/busybox", "rm", "/bin/sh"]',
            'USER agent',
          ),
        /\/bin\/sh/,
      ],
    ];

    it.each(sampleOf(broken, 1))(
      'which %s: says what is missing, records preflight_failed and starts nothing',
      async (_, make, missing) => {
        const image = await make(world);
        const since = Math.floor(Date.now() / 1000);
        const events = await listDisabled(async () => {
          const done = await world.launch(['--image', image, '--name', 'modes-test'], ['echo', 'ran']);
          expect(done.code).toBe(125);
          expect(done.stdout).toBe('');
          expect(done.stderr).toMatch(missing);
          expect(done.stderr).toContain('--sandbox-proxy=off');
        });
        expect(events).toHaveLength(1);
        expect(events[0]).toMatchObject({
          'svc.proxy.reason': 'preflight_failed',
          'svc.sandbox.mode': 'docker',
          'svc.sandbox.image': image,
        });
        expect(await containersMadeSince(since)).toBe(0);
        expect(await world.bench.containersOf(world.svc)).toEqual([]);
        const sessions = await world.svc.local('GET', '/v1/sandbox-proxy/sessions');
        expect(sessions.body).toMatchObject({ items: [] });
      },
    );

    it('names the image contract, and prints lines for a Dockerfile', async () => {
      const done = await world.launch(['--sandbox-proxy=on', '--image', world.bench.images.debianBase], ['true']);
      expect(done.code).toBe(125);
      expect(done.stderr).toContain('docs/image-contract.md');
      expect(done.stderr).toContain('bring-your-own-image proxy contract');
      expect(done.stderr).toMatch(/COPY .*svc-install-proxy-ca/);
    });

    it('says how to get a missing image, and records preflight_failed', async () => {
      const events = await listDisabled(async () => {
        const done = await world.launch(['--image', 'svc-e2e-there-is-no-such-image:1'], ['echo', 'ran']);
        expect(done).toMatchObject({ code: 125, stdout: '' });
        expect(done.stderr).toMatch(/no image "svc-e2e-there-is-no-such-image:1"[^]*svc image build/);
      });
      expect(events).toEqual([expect.objectContaining({ 'svc.proxy.reason': 'preflight_failed' })]);
    });

    it('runs nothing if the trust store cannot be written, and says so', async () => {
      const store = world.bench.folder('store');
      const done = await world.launch(['--mount', `${store}:/etc/ssl/certs:ro`], ['echo', 'ran']);
      expect(done.code).not.toBe(0);
      expect(done.stdout).toBe('');
      expect(done.stderr).toMatch(/trust store|certs/);
    });
  });

  // mcp/in_container.test.ts launches agents in an image that svc image build made.
  it.each(ONLY_FULL)('is built into an image by svc image build, without the network%s', async () => {
    const { images, engine } = world.bench;
    const tag = `svc-e2e-built:${process.pid}`;
    await world.svc.ok(['image', 'build', '--base', images.debianBase, '--tag', tag], {
      env: engine.environment,
    });
    const done = await world.launch(['--image', tag], ['curl', '-sS', `https://${HOST}/built`]);
    expect(done).toMatchObject({ code: 0, stdout: 'ok' });
    await engine.docker('image', 'rm', tag);
  });

  it('is refused in every mode while the sidecar is down, because nothing could be recorded', async () => {
    await world.svc.stop({ keepHome: true });
    for (const proxy of ['auto', 'on', 'off']) {
      const done = await world.launch([`--sandbox-proxy=${proxy}`], ['echo', 'ran']);
      expect({ proxy, code: done.code, stdout: done.stdout }).toEqual({ proxy, code: 3, stdout: '' });
    }
    const none = await world.svc.cli(['launch', '--sandbox=none', '--', 'echo', 'ran']);
    expect(none).toMatchObject({ code: 3, stdout: '' });
  });
});

function lacking(helper: string) {
  return ({ bench }: ContainerWorld): Promise<string> =>
    variantOf(bench.engine, bench.images.debian, 'USER root', `RUN rm /usr/local/bin/${helper}`, 'USER agent');
}
