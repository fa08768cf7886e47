import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { freezePlan } from '../../sandbox/plan/freeze_plan.ts';
import { parsePlan } from '../../sandbox/plan/plan_file.ts';
import { bytes, IMAGE_ID, PLAN_TEXT, testSigner } from '../../sandbox/plan/testing/sample_plan.ts';
import { runCli, TestHome, type Answer } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

/** A missing engine: commands that need none must still work. */
const env = { DOCKER_HOST: 'unix:///nonexistent/docker.sock' };
const plan = (argv: readonly string[], answer?: Answer) =>
  runCli(home, ['plan', ...argv], { env, ...(answer !== undefined && { answer }) });

/** Writes a plan and its lock, signed by the sidecar of this state directory. */
async function writeFrozenPlan(): Promise<void> {
  const signer = await testSigner();
  home.write('plan.yaml', PLAN_TEXT);
  home.write(join('sidecar', 'identity.json'), JSON.stringify(signer.identity));
  const parsed = parsePlan(PLAN_TEXT);
  if (!parsed.ok) throw new Error('the sample plan is not valid');
  const lock = await freezePlan(parsed.value, bytes(PLAN_TEXT), IMAGE_ID, signer);
  if (!lock.ok) throw new Error(lock.error);
  home.write('plan.lock', lock.value.text);
}

const change = (name: string, from: string, to: string): void => {
  home.write(name, readFileSync(join(home.path, name), 'utf8').replace(from, to));
};

describe('svc plan init', () => {
  test('writes a plan and never overwrites one', async () => {
    expect(await plan(['init'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('wrote plan.yaml'),
      stderr: expect.stringContaining('no such image on this machine yet: svc image build --base node:24 --tag agent'),
    });
    const written = readFileSync(join(home.path, 'plan.yaml'), 'utf8');
    expect(parsePlan(written).ok).toBe(true);
    expect(await plan(['init'])).toMatchObject({ code: 1, stderr: expect.stringContaining('already exists') });
    expect(readFileSync(join(home.path, 'plan.yaml'), 'utf8')).toBe(written);
    expect(await plan(['init', 'other.yaml'])).toMatchObject({ code: 0 });
  });

  test('names the image that is given, and nothing else in its place', async () => {
    expect(await plan(['init', '--image', 'tools:2'])).toMatchObject({ code: 0, stderr: '' });
    expect(parsePlan(readFileSync(join(home.path, 'plan.yaml'), 'utf8'))).toMatchObject({
      ok: true,
      value: { image: 'tools:2' },
    });
    expect(await plan(['init', 'b.yaml', '--image', 'tools:2\nsteps: []'])).toMatchObject({ code: 2 });
  });
});

describe('svc plan freeze', () => {
  test('lists every problem of a plan with its line, without any call', async () => {
    home.write(
      'plan.yaml',
      PLAN_TEXT.replace('[api.example.com]', '["*.example.com"]').replace('effect: read', 'effect: all'),
    );
    const run = await plan(['freeze']);
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(
      /plan\.yaml:8: steps\[0\]\.trust\.effect is "all".*\n.*plan\.yaml:9: steps\[0\]\.trust\.hosts\[0\] has a "\*"/,
    );
    expect(run.calls).toEqual([]);
  });

  test('fails without an engine and writes nothing', async () => {
    home.write('plan.yaml', PLAN_TEXT);
    const run = await plan(['freeze']);
    expect(run.code).not.toBe(0);
    expect(existsSync(join(home.path, 'plan.lock'))).toBe(false);
  });

  test('names a missing plan and the fix', async () => {
    const run = await plan(['freeze', 'nightly.yaml']);
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining('nightly.yaml cannot be read') });
    expect(run.stderr).toContain('svc plan init');
  });
});

describe('svc plan verify and show', () => {
  test('succeed for unchanged files, without svc running', async () => {
    await writeFrozenPlan();
    const run = await plan(['verify', '--offline']);
    expect(run).toMatchObject({ code: 0, stdout: 'ok\tsignature\nok\tlock\nok\tplan\n', calls: [] });
  });

  test('name each change, with a separate exit code', async () => {
    await writeFrozenPlan();
    change('plan.yaml', 'api.example.com]', 'evil.example.com]');
    const run = await plan(['verify', '--offline', '--json']);
    expect(run.code).toBe(1);
    expect(JSON.parse(run.stdout)).toMatchObject({
      ok: false,
      checks: [
        { subject: 'signature', holds: true },
        { subject: 'lock', holds: true },
        {
          subject: 'plan',
          holds: false,
          problems: [expect.stringContaining('steps[0].hosts[0] is "evil.example.com"')],
        },
      ],
    });
  });

  test('say how to create a missing lock', async () => {
    home.write('plan.yaml', PLAN_TEXT);
    expect(await plan(['verify'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('svc plan freeze plan.yaml'),
    });
  });

  test('show prints the steps and their reach, and warns if they differ from the lock', async () => {
    await writeFrozenPlan();
    const shown = await plan(['show']);
    expect(shown.stdout).toBe(
      'fetch\tread\tapi.example.com\t60 s\tcurl --fail https://api.example.com/items\ncount\t-\tno host\t900 s\twc -l\n',
    );
    expect(shown.stderr).toBe('');
    change('plan.lock', '"api.example.com"', '"evil.example.com"');
    expect((await plan(['show'])).stderr).toContain('svc plan verify');
  });

  test('escapes control characters in the names of a lock', async () => {
    await writeFrozenPlan();
    change('plan.lock', '"nightly"', '"\\u001b[2J"');
    const run = await plan(['show']);
    expect(run.code).toBe(1);
    expect(run.stderr).not.toContain('\u001b[2J');
  });
});

describe('svc plan run', () => {
  test('refuses a changed plan before any call', async () => {
    await writeFrozenPlan();
    change('plan.yaml', 'timeout_seconds: 60', 'timeout_seconds: 600');
    const run = await plan(['run']);
    expect(run).toMatchObject({ code: 125, calls: [] });
    expect(run.stderr).toContain('steps[0].timeout_seconds is 600, and 60 is frozen');
  });

  test('refuses a step that is not in the lock', async () => {
    await writeFrozenPlan();
    expect(await plan(['run', '--step', 'fetsh'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean fetch?'),
    });
  });

  test('says that it leaves the .svc.toml of the folder out', async () => {
    await writeFrozenPlan();
    expect((await plan(['run'])).stderr).not.toContain('.svc.toml');
    home.write('.svc.toml', 'secrets = ["user/github-work"]');
    expect((await plan(['run'])).stderr).toContain('.svc.toml has no effect here: a step of a plan uses the account');
  });

  test('refuses an unknown egress', async () => {
    expect((await plan(['run', '--egress', 'shut'])).code).toBe(2);
  });
});
