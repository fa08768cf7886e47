import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
let clashes: { kind: string; name: string }[];
beforeEach(() => {
  home = new TestHome();
  clashes = [];
});
afterEach(() => home.remove());

const ID = 'ent_01m7yjbz4dz98vffmftfxp52e5';
const moves = { secret: 2, host_binding: 1, tunnel_host: 0, connector: 0, mcp_server: 0 };
const answer: Answer = ({ method }) => {
  const merged = { enterprise_id: ID, slug: 'pat-home', name: 'Pat', moves };
  return { status: 200, body: method === 'GET' ? { ...merged, clashes } : merged };
};
const run = (...args: string[]) => runCli(home, ['enterprise', 'merge', ID, ...args], { answer });

test('shows what moves, and confirms with the slug', async () => {
  const { calls, stdout, stderr } = await run('--yes');
  expect(calls.map(({ method, body }) => [method, body])).toEqual([
    ['GET', undefined],
    ['POST', { confirm: 'pat-home' }],
  ]);
  expect(stderr).toContain('From Pat move: secrets: 2, host bindings: 1.');
  expect(stdout).toContain('moved secrets: 2, host bindings: 1; Pat is empty');
});

test('without --yes and a terminal, and with clashes, nothing is sent', async () => {
  const silent = await run();
  expect([silent.code, silent.calls.length]).toEqual([2, 1]);
  clashes = [{ kind: 'secret', name: 'user/key' }];
  const clashing = await run('--yes');
  expect([clashing.code, clashing.calls.length]).toEqual([1, 1]);
  expect(clashing.stderr).toContain('secret user/key');
});
