import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const MIB = 1024 * 1024;
const items = [
  { kind: 'secrets', of: 'account', what: 'secrets', unit: 'count', used: 12, limit: 5_000 },
  {
    kind: 'all_bytes',
    of: 'everybody',
    what: 'secrets and definitions',
    unit: 'bytes',
    used: 1.5 * MIB,
    limit: MIB * 2,
  },
];
const answer: Answer = () => ({ status: 200, body: { items } });

test('svc enterprise usage shows how much is kept, what is nearest to its limit first', async () => {
  const { stdout, calls } = await runCli(home, ['enterprise', 'usage'], { answer });
  expect(calls.map(({ method, url }) => `${method} ${url.pathname}`)).toEqual(['GET /v1/usage']);
  expect(stdout).toBe(
    'all of its people\tsecrets and definitions\t1.50 MiB\t2 MiB\nyour account\tsecrets\t12\t5,000\n',
  );
});
