import { beforeAll, describe, expect, test } from 'vitest';
import type { PlanLockContent } from '../../shared/wire/plan/plan_lock.ts';
import { freezePlan } from './freeze_plan.ts';
import { formatLock } from './lock_file.ts';
import { parsePlan } from './plan_file.ts';
import { bytes, IMAGE_ID, PLAN_TEXT, SIDECAR_ID, testSigner, type TestSigner } from './testing/sample_plan.ts';
import { checkImageId, verifyPlan } from './verify_plan.ts';

let signer: TestSigner;
let lockText: string;
let content: PlanLockContent;
beforeAll(async () => {
  signer = await testSigner();
  const plan = parsePlan(PLAN_TEXT);
  if (!plan.ok) throw new Error('the sample plan is not valid');
  const frozen = await freezePlan(plan.value, bytes(PLAN_TEXT), IMAGE_ID, signer);
  if (!frozen.ok) throw new Error(frozen.error);
  ({ content, text: lockText } = frozen.value);
});

const file = (name: string, text: string) => ({ name, bytes: bytes(text) });

/** Every problem found; `verified` when there is none. */
async function findProblems(planText: string, lock: string, key = signer.key): Promise<string[] | 'verified'> {
  const { checks, lock: verified } = await verifyPlan(file('plan.yaml', planText), file('plan.lock', lock), key);
  const problems = checks.flatMap((check) => check.problems);
  expect(verified === null).toBe(problems.length > 0);
  return verified === null ? problems : 'verified';
}

describe('verifying a frozen plan', () => {
  test('an unchanged plan and lock are valid', async () => {
    expect(await findProblems(PLAN_TEXT, lockText)).toBe('verified');
  });

  test.each([
    [
      'hosts: [api.example.com]',
      'hosts: [evil.example.com]',
      'steps[0].hosts[0] is "evil.example.com", and "api.example.com" is frozen',
    ],
    [
      'hosts: [api.example.com]',
      'hosts: [api.example.com, b.example.com]',
      'steps[0].hosts[1] was added: "b.example.com"',
    ],
    ['[wc, -l]', '[wc]', 'steps[1].command[1] is gone: "-l" is frozen'],
    ['timeout_seconds: 60', 'timeout_seconds: 61', 'steps[0].timeout_seconds is 61, and 60 is frozen'],
    ['effect: read', 'effect: write', 'steps[0].effect is "write", and "read" is frozen'],
    ['agent-tools:1', 'agent-tools:2', 'image.name is "agent-tools:2", and "agent-tools:1" is frozen'],
    ['name: nightly', 'name: nightly # now', 'only its layout or comments were changed'],
  ])('a plan with %j instead of %j is noticed', async (from, to, expected) => {
    expect(await findProblems(PLAN_TEXT.replace(from, to), lockText)).toEqual(
      [`plan.yaml: ${expected}`].map((text) => expect.stringContaining(text)),
    );
  });

  test('an invalid plan is reported with its line', async () => {
    expect(await findProblems(PLAN_TEXT.replace('effect: read', 'effect: all'), lockText)).toEqual([
      expect.stringMatching(/^plan\.yaml:8: steps\[0\]\.trust\.effect is "all"/),
    ]);
  });

  test('a change of any byte of the plan or the lock is detected', { timeout: 600_000 }, async () => {
    for (let index = 0; index < PLAN_TEXT.length; index += 1) {
      expect(await findProblems(flipBit(PLAN_TEXT, index), lockText), `byte ${index}`).not.toBe('verified');
    }
    for (let index = 0; index < lockText.length; index += 3) {
      expect(await findProblems(PLAN_TEXT, flipBit(lockText, index)), `byte ${index}`).not.toBe('verified');
    }
  });

  test('a lock that differs from its signature is reported with the place', async () => {
    expect(await findProblems(PLAN_TEXT, lockText.replace('"api.example.com"', '"evil.example.com"'))).toEqual([
      'plan.lock: steps[0].hosts[0] is "evil.example.com", and "api.example.com" was signed',
    ]);
    expect(await findProblems(PLAN_TEXT, `${lockText}\n`)).toEqual([
      'plan.lock: its layout was changed by hand, though it says the same',
    ]);
  });

  test('a lock of another key, another sidecar or another kind of signature is refused', async () => {
    const stranger = await testSigner();
    const locks = [
      formatLock(content, await stranger.sign(content)),
      formatLock(content, await signer.sign(content, { typ: 'svc-snapshot+jws' })),
      formatLock(content, await signer.sign(content, { sidecarId: `sdc_${'1'.repeat(26)}` })),
    ];
    for (const lock of locks) {
      expect(await findProblems(PLAN_TEXT, lock)).toEqual([expect.stringMatching(/^plan\.lock: its signature /)]);
    }
  });

  test('a signature over a reach with a pattern is refused, even with the right key', async () => {
    const [first, ...rest] = content.steps;
    const wide = { ...content, steps: [{ ...first!, hosts: ['*.example.com'] }, ...rest] };
    const lock = formatLock(wide, await signer.sign(wide));
    expect(await findProblems(PLAN_TEXT, lock)).not.toBe('verified');
  });

  test('a digest of another lock is refused, even if it is signed', async () => {
    const wrong = { ...content, lock_sha256: '0'.repeat(64) };
    expect(await findProblems(PLAN_TEXT, formatLock(wrong, await signer.sign(wrong)))).toEqual([
      expect.stringContaining('lock_sha256 is not the digest of the lock'),
    ]);
  });
});

describe('freezing', () => {
  test('does not write a lock if the sidecar signed something else', async () => {
    const plan = parsePlan(PLAN_TEXT);
    if (!plan.ok) throw new Error('the sample plan is not valid');
    const sign = (asked: PlanLockContent) => signer.sign({ ...asked, lock_sha256: '0'.repeat(64) });
    const frozen = await freezePlan(plan.value, bytes(PLAN_TEXT), IMAGE_ID, { key: signer.key, sign });
    expect(frozen).toEqual({ ok: false, error: "the sidecar's signature covers another lock" });
  });

  test('names the sidecar that signed', async () => {
    const { lock } = await verifyPlan(file('p', PLAN_TEXT), file('l', lockText), signer.key);
    expect(lock?.payload.sidecar_id).toBe(SIDECAR_ID);
  });
});

describe('the image', () => {
  const image = { name: 'agent-tools:1', id: IMAGE_ID };
  const other = `sha256:${'b'.repeat(64)}`;

  test('is compared by its id only', () => {
    expect(checkImageId(image, IMAGE_ID, null).holds).toBe(true);
    expect(checkImageId(image, null, other).problems).toEqual([
      `the image ${IMAGE_ID} that the plan was frozen with is not in the engine: agent-tools:1 is ${other} now`,
    ]);
    expect(checkImageId(image, null, null).problems).toEqual([
      `the image ${IMAGE_ID} that the plan was frozen with is not in the engine, nor is any under the name agent-tools:1`,
    ]);
  });
});

/** The text with one bit of one byte changed. */
function flipBit(text: string, index: number): string {
  return text.slice(0, index) + String.fromCharCode(text.charCodeAt(index) ^ 1) + text.slice(index + 1);
}
