import { describe, expect, test } from 'vitest';
import type { Plan } from '../model/plan.ts';
import { planLockContent } from '../wire/plan/plan_lock.ts';
import { lockDigest, planDigests, sealPlan } from './seal.ts';

const PLAN: Plan = {
  name: 'nightly',
  image: 'agent-tools:1',
  steps: [
    {
      id: 'fetch',
      command: ['curl'],
      trust: { effect: 'read', hosts: ['api.example.com'] },
      mounts: [],
      collect: [],
      timeoutSeconds: 60,
    },
    { id: 'count', command: ['wc'], mounts: [], collect: [], timeoutSeconds: 900 },
  ],
};
const IMAGE_ID = `sha256:${'a'.repeat(64)}`;
const file = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const sealed = async () => sealPlan(PLAN, await planDigests(PLAN, file('x')), IMAGE_ID);

describe('sealing a plan', () => {
  test('returns content that the lock format accepts; a step without trust has neither effect nor hosts', async () => {
    const content = await sealed();
    expect(planLockContent.parse(content)).toEqual(content);
    expect(content.steps[1]).toEqual({
      id: 'count',
      command: ['wc'],
      hosts: [],
      timeout_seconds: 900,
      mounts: [],
      collect: [],
    });
  });

  test("the plan digest covers the plan's content, the file digest its bytes", async () => {
    const [one, two] = [await planDigests(PLAN, file('a')), await planDigests(PLAN, file('b'))];
    expect(one.plan_sha256).toBe(two.plan_sha256);
    expect(one.plan_file_sha256).not.toBe(two.plan_file_sha256);
    const other = await planDigests({ ...PLAN, image: 'agent-tools:2' }, file('a'));
    expect(other.plan_sha256).not.toBe(one.plan_sha256);
  });

  test('the lock digest covers every field', async () => {
    const content = await sealed();
    expect(await lockDigest(content)).toBe(content.lock_sha256);
    const changed = [
      { ...content, name: 'other' },
      { ...content, plan_sha256: '0'.repeat(64) },
      { ...content, plan_file_sha256: '0'.repeat(64) },
      { ...content, image: { ...content.image, id: `sha256:${'b'.repeat(64)}` } },
      { ...content, steps: content.steps.slice(1) },
    ];
    for (const one of changed) expect(await lockDigest(one)).not.toBe(content.lock_sha256);
  });
});
