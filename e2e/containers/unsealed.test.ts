import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sampleOf } from '../support/full_counts.ts';
import { foundIn, plantSecret, searchFiles } from '../support/planted_secret.ts';
import { type ContainerWorld, describeContainers, startContainerWorld } from './container_world.ts';

const HOST = 'api.example.test';
const SECRET = plantSecret();
const OTHER = plantSecret();
const REASON = 'the client pins its certificate, and signs with it';
let world: ContainerWorld;

const unsealedFlags = (text: string): string[] => ['--unsealed', text];

describeContainers('svc launch --unsealed', () => {
  beforeAll(async () => {
    world = await startContainerWorld([HOST]);
    await world.svc.secret('user/pinned', SECRET);
    await world.svc.secret('user/other', OTHER);
  });
  afterAll(() => world.stop());

  it('puts that credential into the environment, and records which one, for which host and why', async () => {
    const flags = [...unsealedFlags(`PINNED=vault://user/pinned,host=${HOST},reason=${REASON}`), '--env', 'FINE'];
    const env = { FINE: 'as it is' };
    const done = await world.launch(flags, ['sh', '-c', 'printf "%s %s" "$PINNED" "$FINE"'], { env });
    expect(done).toMatchObject({ code: 0, stdout: `${SECRET} as it is` });
    const events = (await world.svc.events()).filter(({ type }) => type === 'sandbox.proxy.credential_unsealed');
    expect(events).toHaveLength(1);
    expect(events[0]?.session_id).toMatch(/^ses_/);
    expect(events[0]?.data).toMatchObject({
      'svc.proxy.credential_ref': 'vault://user/pinned',
      'svc.proxy.upstream.host': HOST,
      'svc.proxy.reason': REASON,
    });
    expect(foundIn(JSON.stringify(await world.svc.events()), SECRET)).toEqual([]);
  });

  it('is shown by svc sessions show, without the value', async () => {
    const { environment } = world.bench.engine;
    const flags = unsealedFlags(`PINNED=vault://user/pinned,host=${HOST},reason=${REASON}`);
    await world.launch([...flags, '--detach', '--name', 'honest'], ['sleep', '600']);
    const shown = await world.svc.ok(['sessions', 'show', 'honest'], { env: environment });
    expect(shown).toContain(`PINNED holds vault://user/pinned for ${HOST}: ${REASON}`);
    expect(foundIn(shown, SECRET)).toEqual([]);
    const [container = ''] = await world.bench.containersOf(world.svc);
    const pid = await world.bench.engine.docker('inspect', '--format', '{{.State.Pid}}', container);
    expect(foundIn(readFileSync(`/proc/${pid}/cmdline`), SECRET)).toEqual([]);
    expect(searchFiles(world.svc.home, SECRET).holding).toEqual([]);
    await world.svc.ok(['sessions', 'stop', 'honest'], { env: environment });
  });

  it('is the only way: --env refuses a variable with a stored secret, and says how to bind it', async () => {
    const done = await world.launch(['--env', 'LEAK', '--env', 'FINE'], ['env'], {
      env: { LEAK: OTHER, FINE: 'as it is' },
    });
    expect(done.code).toBe(125);
    expect(done.stdout).toBe('');
    expect(done.stderr).toContain('--env LEAK holds the stored secret vault://user/other');
    expect(done.stderr).toContain('svc binding add');
    expect(foundIn(done.stderr, OTHER)).toEqual([]);
  });

  const refused: [string, string, RegExp][] = [
    ['a credential that is not stored', `X=vault://user/nowhere,host=${HOST},reason=because`, /user\/nowhere/],
    ['a value instead of a reference', `X=hunter2,host=${HOST},reason=because`, /vault:\/\//],
    ['the session token', `SVC_TOKEN=vault://user/pinned,host=${HOST},reason=because`, /SVC_TOKEN/],
    ['no reason', `X=vault://user/pinned,host=${HOST},reason=`, /reason/],
    ['no host', 'X=vault://user/pinned,reason=because', /host=HOST/],
    ['a variable of the proxy', `HTTPS_PROXY=vault://user/pinned,host=${HOST},reason=because`, /HTTPS_PROXY/],
  ];
  it.each(sampleOf(refused, 1))('refuses %s, and starts nothing', async (_, text, problem) => {
    const done = await world.launch(unsealedFlags(text), ['echo', 'ran']);
    expect([1, 2, 125]).toContain(done.code);
    expect(done.stdout).toBe('');
    expect(done.stderr).toMatch(problem);
    expect(done.stderr).not.toContain('hunter2');
    expect(await world.bench.containersOf(world.svc)).toEqual([]);
  });

  const unfit: [string, RegExp][] = [
    ['LD_PRELOAD', /heeded/],
    ['NAME=value', /contains a value/],
    ['NOT_SET_ANYWHERE', /not set/],
    ['SVC_TOKEN', /set by svc/],
  ];
  it.each(sampleOf(unfit, 1))('refuses --env %s', async (name, problem) => {
    const done = await world.launch(['--env', name], ['echo', 'ran'], { env: { LD_PRELOAD: '' } });
    expect(done.code).toBe(2);
    expect(done.stderr).toMatch(problem);
  });

  it('is listed by svc report sealability: each credential with how it is sealed, or why not', async () => {
    await world.svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/other' });
    const report = await world.svc.ok(['report', 'sealability']);
    expect(report).toContain('user/other');
    expect(report).toContain('user/pinned');
    expect(report).toContain('bearer');
    expect(foundIn(report, SECRET)).toEqual([]);
    expect(foundIn(report, OTHER)).toEqual([]);
  });
});
