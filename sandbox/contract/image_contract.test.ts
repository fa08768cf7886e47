import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ImageConfig, RuntimeFailure } from '../engine/container_runtime.ts';
import { checkImage, type ImageChecks } from './image_contract.ts';
import type { ImageFacts } from './image_contract_facts.ts';
import { agentUserOf, isPlainUserName, probeScript } from './image_contract_probe.ts';
import { sampleImage } from '../engine/testing/sample_image.ts';

const config = sampleImage({ user: 'agent' });

const HELPERS_FOUND = [
  'svc-install-proxy-ca=/usr/local/bin/svc-install-proxy-ca',
  'svc-run-with-proxy-ca=/usr/local/bin/svc-run-with-proxy-ca',
  'svc-run-step=/usr/local/bin/svc-run-step',
  'contract=1',
];
const GOOD = [
  ...HELPERS_FOUND,
  'check=0',
  'said:layout=debian',
  'said:java=yes',
  'said:agent=agent',
  'said:uid=1000',
  'said:gid=1000',
  'said:home=/home/agent',
  'said:drop=setpriv',
  'said:certutil=no',
  'said:steps=yes',
];

class FakeRuntime {
  readonly probed: { readonly image: string; readonly script: string }[] = [];
  #config: Result<ImageConfig, RuntimeFailure>;
  #output: Result<string, RuntimeFailure>;

  constructor(output: readonly string[] | RuntimeFailure, image: Partial<ImageConfig> | RuntimeFailure = {}) {
    this.#output = 'reason' in output ? err(output) : ok(`${output.join('\n')}\n`);
    this.#config = 'reason' in image ? err(image) : ok({ ...config, ...image });
  }

  readonly inspectImage = (): Promise<Result<ImageConfig, RuntimeFailure>> => Promise.resolve(this.#config);
  readonly runProbe = (image: string, script: string): Promise<Result<string, RuntimeFailure>> => {
    this.probed.push({ image, script });
    return Promise.resolve(this.#output);
  };
}

class FakeChecks implements ImageChecks {
  readonly kept: ImageFacts[] = [];
  readonly find = (imageId: string): ImageFacts | null => this.kept.find((one) => one.imageId === imageId) ?? null;
  readonly keep = (facts: ImageFacts): Promise<void> => {
    this.kept.push(facts);
    return Promise.resolve();
  };
}

async function problemsOf(
  output: readonly string[] | RuntimeFailure,
  image: Partial<ImageConfig> = {},
): Promise<string[]> {
  const checked = await checkImage(new FakeRuntime(output, image), 'my-image');
  if (checked.ok || checked.error.reason !== 'image_contract_not_met') return [];
  return 'problems' in checked.error ? checked.error.problems.map((problem) => problem.missing) : [];
}

describe('the check of an image', () => {
  test('returns the facts of an image that meets the contract', async () => {
    const checked = await checkImage(new FakeRuntime(GOOD), 'my-image');
    expect(checked).toEqual(
      ok({
        imageId: 'sha256:abc',
        contractVersion: '1',
        agentUser: 'agent',
        uid: 1000,
        gid: 1000,
        home: '/home/agent',
        layout: 'debian',
        hasJava: true,
        hasCertutil: false,
        entry: '/usr/local/bin/svc-run-with-proxy-ca',
        stepRunner: '/usr/local/bin/svc-run-step',
        mcpNode: null,
        stepsRefused: null,
      }),
    );
  });

  test('probes the image by its id, so that a moved tag does not matter', async () => {
    const runtime = new FakeRuntime(GOOD);
    await checkImage(runtime, 'my-image');
    expect(runtime.probed.map((probe) => probe.image)).toEqual(['sha256:abc']);
  });

  test('caches only images that meet the contract', async () => {
    const checks = new FakeChecks();
    const good = new FakeRuntime(GOOD);
    const bad = new FakeRuntime(['contract=1']);
    const lookTwice = async (runtime: FakeRuntime, other: ImageChecks): Promise<number> => {
      await checkImage(runtime, 'my-image', other);
      await checkImage(runtime, 'my-image', other);
      return runtime.probed.length;
    };
    expect(await lookTwice(bad, checks)).toBe(2);
    expect(await lookTwice(good, checks)).toBe(1);
  });

  test.each([
    ['the missing programs', ['missing=svc-run-step', 'contract=1'], ['helper']],
    ['another version', [...HELPERS_FOUND.slice(0, 3), 'contract=2'], ['contract_version']],
    ['no version', [...HELPERS_FOUND.slice(0, 3), 'contract='], ['contract_version']],
    ['the folder of the CA', [...HELPERS_FOUND, 'missing=/etc/svc/proxy', 'check=11'], ['proxy_folder']],
    ['the user', [...HELPERS_FOUND, 'missing=user', 'check=19'], ['agent_user']],
    ['the trust store', [...HELPERS_FOUND, 'missing=trust-store', 'check=14'], ['trust_store']],
    [
      'everything at once',
      ['missing=svc-install-proxy-ca', 'contract=', 'missing=/etc/svc/proxy', 'missing=user', 'missing=trust-store'],
      ['helper', 'proxy_folder', 'agent_user', 'trust_store'],
    ],
    ['what the programs refuse', [...HELPERS_FOUND, 'check=13', 'said:it is read-only'], ['writable_trust_store']],
    ['a code of the programs that nobody knows', [...HELPERS_FOUND, 'check=99'], ['helper']],
    ['programs that say nothing', HELPERS_FOUND, ['helper']],
    ['nothing at all', [''], ['contract_version']],
    ['a user that is root', GOOD.map((line) => (line === 'said:uid=1000' ? 'said:uid=0' : line)), ['helper']],
    ['a home that is no path', GOOD.map((line) => (line.startsWith('said:home') ? 'said:home=x' : line)), ['helper']],
    ['an odd layout', GOOD.map((line) => (line.startsWith('said:layout') ? 'said:layout=x' : line)), ['helper']],
  ])('names %s', async (_what, output, missing) => {
    expect(await problemsOf(output)).toEqual(missing);
  });

  test('an image that cannot run steps of plans still meets the contract', async () => {
    const output = GOOD.map((line) => (line === 'said:steps=yes' ? 'said:steps=/usr/local/bin may be changed' : line));
    const checked = await checkImage(new FakeRuntime(output), 'my-image');
    expect(checked).toMatchObject({ ok: true, value: { stepsRefused: '/usr/local/bin may be changed' } });
  });

  test("an image's own output cannot fake results of the probe", async () => {
    expect(await problemsOf([...HELPERS_FOUND, 'check=20', 'said:check=0', 'said:missing='])).toEqual([
      'change_of_user',
    ]);
  });

  test('a refusal names Dockerfile lines, the contract and the way without the proxy', async () => {
    const checked = await checkImage(new FakeRuntime(['missing=svc-run-step', 'missing=user']), 'my-image');
    if (checked.ok) throw new Error('the image passed');
    const text = checked.error.fixes.join('\n');
    for (const words of [
      'svc image build --base my-image',
      'COPY svc-install-proxy-ca',
      'RUN useradd',
      'docs/image-contract.md',
      'bring-your-own-image proxy contract',
      '--sandbox-proxy=off',
    ]) {
      expect(text).toContain(words);
    }
    expect(checked.error.message).toContain('"my-image"');
  });

  test('distinguishes an image without a shell from an engine that is away', async () => {
    const refused: RuntimeFailure = { reason: 'engine_refused', message: 'no such file', fixes: [] };
    const away: RuntimeFailure = { reason: 'engine_unreachable', message: 'away', fixes: [] };
    expect(await problemsOf(refused)).toEqual(['shell']);
    expect(await checkImage(new FakeRuntime(away), 'x')).toEqual(err(away));
    expect(await checkImage(new FakeRuntime(GOOD, { ...away, reason: 'image_missing' }), 'x')).toMatchObject({
      error: { reason: 'image_missing' },
    });
  });
});

describe('the agent user of an image', () => {
  test.each([
    ['', 'agent'],
    ['root', 'agent'],
    ['0', 'agent'],
    ['0:0', 'agent'],
    ['node', 'node'],
    ['node:node', 'node'],
    ['1000:1000', '1000'],
  ])('of USER %j is %s', (user, expected) => {
    expect(agentUserOf({ user })).toBe(expected);
  });

  test.each(["a'; touch /tmp/x; '", '$(id)', 'a b', '-x', '', 'x'.repeat(100), 'a\nb'])(
    'is refused when it is %j',
    async (user) => {
      expect(isPlainUserName(user)).toBe(false);
      if (user === '') return;
      const runtime = new FakeRuntime(GOOD, { user });
      expect(await checkImage(runtime, 'x')).toMatchObject({ ok: false, error: { reason: 'image_contract_not_met' } });
      expect(runtime.probed).toEqual([]);
    },
  );
});

test('the probe is a valid sh script and names what this machine lacks', () => {
  const output = execFileSync('/bin/sh', ['-c', probeScript('no-such-user')], { encoding: 'utf8' });
  expect(output).toContain('missing=user\n');
  expect(output).toContain('missing=svc-run-step\n');
});
