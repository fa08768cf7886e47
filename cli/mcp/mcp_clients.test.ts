import { afterEach, beforeEach, expect, test } from 'vitest';
import type { McpClientRecord } from '../../shared/wire/mcp/mcp_clients.ts';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const client: McpClientRecord = {
  id: 'mcc_01m7yjbz4dz98vffmftfxp52e5',
  name: 'Pho\u001b[31mne',
  client_id: 'https://app.example.com/client.json',
  redirect_origin: 'https://app.example.com',
  connected_by: 'person',
  created_at: '2026-01-01T11:00:00.000Z',
  last_used_at: '2026-01-01T11:59:00.000Z',
  expires_at: '2026-04-01T11:00:00.000Z',
};
const answer: Answer = ({ method }) =>
  method === 'DELETE' ? { status: 204 } : { status: 200, body: { items: [client], next_cursor: null } };
const run = (argv: readonly string[]) => runCli(home, ['mcp', ...argv], { answer });

test('svc mcp clients lists them, without control characters', async () => {
  const { stdout, calls } = await run(['clients']);
  expect(calls.map(({ url }) => url.pathname)).toEqual(['/v1/mcp-clients']);
  expect(stdout).toContain(client.id);
  expect(stdout).toContain('https://app.example.com');
  expect(stdout).not.toContain('\u001b');
});

test('svc mcp disconnect ends one', async () => {
  const { stdout, calls } = await run(['disconnect', client.id]);
  expect(calls.map(({ method, url }) => [method, url.pathname])).toEqual([['DELETE', `/v1/mcp-clients/${client.id}`]]);
  expect(stdout).toBe(`disconnected ${client.id}\n`);
});
