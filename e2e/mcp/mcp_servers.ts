import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { ROOT } from '../support/program.ts';
import { expectStatus, type Svc } from '../support/svc.ts';
import { reply } from '../support/tls_upstream.ts';
import type { World } from '../support/world.ts';

/** The upstream of the connector. */
export const HOST = 'tickets.example.test';
export const FILE_TEXT = 'what the file server reads';
export const RUN_LIST = 'svc_run__acme_tickets__list-issues';
export const RUN_CLOSE = 'svc_run__acme_tickets__close-issue';

const CONNECTOR = {
  schema_version: 1,
  connector: { fqn: 'acme/tickets', version: '1.0.0', title: 'Tickets' },
  hosts: [HOST],
  credential: { kind: 'api_key' },
  operations: [
    {
      name: 'list-issues',
      summary: 'List issues',
      method: 'GET',
      path: '/projects/{project}/issues',
      effect: 'read',
      inputs: [
        { name: 'project', in: 'path', required: true, description: 'Which project' },
        { name: 'filter[state]', in: 'query' },
        { name: 'page', in: 'query', type: 'integer' },
      ],
    },
    {
      name: 'close-issue',
      summary: 'Close an issue',
      method: 'DELETE',
      path: '/issues/{id}',
      effect: 'delete',
      approval: 'required',
      inputs: [{ name: 'id', in: 'path', required: true }],
    },
  ],
};

const PACKAGES = join(ROOT, 'node_modules', '@modelcontextprotocol');
const created = z.object({ id: z.string() });

/** The connector `acme/tickets` with its credential. */
export async function installTickets(svc: Svc, secret: string): Promise<void> {
  const { id } = created.parse((await svc.api('POST', '/v1/connectors', CONNECTOR)).body);
  expectStatus(await svc.api('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: secret }), 200);
}

/** Makes the upstream answer `{"issues":[7]}` from now on. */
export function answerWithIssues({ upstream }: Pick<World, 'upstream'>): void {
  upstream.onRequest(async (exchange) => {
    await exchange.readBody();
    exchange.write(reply(200, '{"issues":[7]}', ['Content-Type: application/json']));
  });
}

/** An active connector with one operation, `get-thing`. */
export async function installMore(svc: Svc, name: string): Promise<void> {
  const operation = { name: 'get-thing', method: 'GET', path: `/${name}/thing`, effect: 'read' };
  const connector = { fqn: `acme/${name}`, version: '1.0.0', title: name };
  const { id } = created.parse(
    (await svc.api('POST', '/v1/connectors', { ...CONNECTOR, connector, operations: [operation] })).body,
  );
  const key = { kind: 'api_key', value: `key-of-${name}` };
  expectStatus(await svc.api('PUT', `/v1/connectors/${id}/credential`, key), 200);
}

/** The servers `files`, which reads one folder, and `everything`, both with consent. */
export async function addServers(svc: Svc): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-files-'));
  writeFileSync(join(folder, 'read.me'), FILE_TEXT);
  await svc.ok(['mcp', 'add', 'files', '--', process.execPath, program('server-filesystem'), folder]);
  await svc.ok(['mcp', 'add', 'everything', '--', process.execPath, program('server-everything')]);
  await svc.ok(['mcp', 'consent', '--yes']);
  return folder;
}

function program(name: string): string {
  return join(PACKAGES, name, 'dist', 'index.js');
}
