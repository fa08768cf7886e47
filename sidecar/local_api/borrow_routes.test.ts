import { realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sha256Hex } from '../../machine/sha256.ts';
import { grantText } from '../../shared/borrow/borrow_grant.ts';
import { LocalApiBench } from '../testing/local_api_bench.ts';

let bench: LocalApiBench;
let program: string;
beforeEach(async () => {
  bench = await LocalApiBench.start();
  program = join(realpathSync(bench.home), 'tool');
  writeFileSync(program, '#!/bin/sh\necho planted-value-of-$1\n', { mode: 0o700 });
});
afterEach(() => bench.stop());

const PATH = '/v1/borrowed-secrets';
const PLACE = { owner: 'personal', path: 'user/demo' } as const;

function consentTo(change: object = {}) {
  const grant = {
    ...PLACE,
    program,
    args: ['demo'],
    env: {},
    output: { form: 'text' as const },
    files: [{ path: program, sha256: sha256Hex('#!/bin/sh\necho planted-value-of-$1\n') }],
    hosts: ['a.test'],
    scheme: 'bearer' as const,
    effect: 'read' as const,
    ...change,
  };
  return { grant, hash: sha256Hex(grantText(grant)) };
}

test.each([
  ['GET', PATH],
  ['POST', PATH],
  ['POST', `${PATH}/withdraw`],
  ['POST', `${PATH}/test`],
])('%s %s is not for agents: a session may neither look nor consent', async (method, path) => {
  const { token } = await bench.createSession();
  const body = method === 'GET' ? undefined : consentTo();
  expect(await bench.call(method, path, body, token)).toMatchObject({ status: 403, code: 'host_token_required' });
  expect(await bench.call(method, path, body, null)).toMatchObject({ status: 401 });
  expect((await bench.call('GET', PATH)).body).toEqual({ items: [] });
});

test('keeps a consent, runs its program, and withdraws it; no reply has the value', async () => {
  expect(await bench.call('POST', PATH, consentTo())).toMatchObject({ status: 204 });
  const listed = await bench.call('GET', PATH);
  expect(listed.body).toMatchObject({ items: [{ ...consentTo(), in_use: false, problem: null, failure: null }] });
  const tested = await bench.call('POST', `${PATH}/test`, PLACE);
  expect(tested).toMatchObject({ status: 200, body: { states_end: false, key_set: false } });
  expect(tested.text + listed.text).not.toContain('planted');
  expect(await bench.call('POST', `${PATH}/withdraw`, PLACE)).toMatchObject({ status: 204 });
  expect(await bench.call('POST', `${PATH}/withdraw`, PLACE)).toMatchObject({ status: 404 });
  expect(await bench.call('POST', `${PATH}/test`, PLACE)).toMatchObject({ status: 404 });
});

test('takes no consent to anything but what was shown', async () => {
  const { grant } = consentTo();
  const other = { grant: { ...grant, hosts: ['evil.test'] }, hash: consentTo().hash };
  expect(await bench.call('POST', PATH, other)).toMatchObject({ status: 400, code: 'invalid_input' });
  writeFileSync(program, 'changed');
  expect(await bench.call('POST', PATH, consentTo())).toMatchObject({ status: 409, code: 'conflict' });
  const preload = consentTo({ env: { LD_PRELOAD: '/tmp/x.so' } });
  expect(await bench.call('POST', PATH, preload)).toMatchObject({ status: 400, code: 'invalid_input' });
});

test('tells the person at the machine what the program said, without what looks like a credential', async () => {
  writeFileSync(program, '#!/bin/sh\necho "no login for token ghp_16C7e42F292c6912E7710c83" >&2; exit 1\n');
  const files = [
    {
      path: program,
      sha256: sha256Hex('#!/bin/sh\necho "no login for token ghp_16C7e42F292c6912E7710c83" >&2; exit 1\n'),
    },
  ];
  await bench.call('POST', PATH, consentTo({ files }));
  const tested = await bench.call('POST', `${PATH}/test`, PLACE);
  expect(tested).toMatchObject({ status: 503, code: 'credential_unavailable' });
  expect(tested.text).toContain('tool ended with status 1: no login for token [masked]');
});
