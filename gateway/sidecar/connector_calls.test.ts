import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listen } from '../../machine/connection/listen.ts';
import { connectorCalls, type ConnectorCalls } from './connector_calls.ts';
import { type LocalApiAddress, LocalApi } from './local_api.ts';

const RUN = { connector_fqn: 'acme/items', operation: 'get-item', args: {} };
const REPLY = {
  status: 'proxied',
  audit_id: `evt_${'0'.repeat(26)}`,
  connector_fqn: 'acme/items',
  operation: 'get-item',
  upstream_status: 200,
  content_type: '',
  body_base64: '',
};
const never = new AbortController().signal;

let server: Server;
let calls: ConnectorCalls;
let address: LocalApiAddress | null;
let requests: IncomingMessage[];
let answer: (response: ServerResponse) => void;

beforeEach(async () => {
  requests = [];
  server = createServer((request, response) => {
    requests.push(request);
    request.resume().on('end', () => answer(response));
  });
  const port = await listen(server, 0, '127.0.0.1');
  address = { origin: new URL(`http://127.0.0.1:${port}`), hostToken: 'svc_host_x' };
  calls = connectorCalls(new LocalApi(() => address));
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

function json(status: number, body: object, headers: Record<string, string> = {}): typeof answer {
  return (response) => response.writeHead(status, headers).end(JSON.stringify(body));
}

describe('the sidecar, as the gateway calls it', () => {
  it('returns the list with its tag, and null while unchanged', async () => {
    answer = json(200, { items: [] }, { etag: '"1"' });
    expect(await calls.operations(null, 0, never)).toEqual({ ok: true, value: { etag: '"1"', operations: [] } });
    answer = (response) => response.writeHead(304, { etag: '"1"' }).end();
    expect(await calls.operations('"1"', 5, never)).toEqual({ ok: true, value: null });
    expect(requests.map(({ url, headers }) => [url, headers['if-none-match'], headers.authorization])).toEqual([
      ['/v1/connector-operations?wait=0', undefined, 'Bearer svc_host_x'],
      ['/v1/connector-operations?wait=5', '"1"', 'Bearer svc_host_x'],
    ]);
  });

  it('runs for a session or for the host', async () => {
    answer = json(200, REPLY);
    expect(await calls.run(RUN, 'ses_1', never)).toEqual({ ok: true, value: REPLY });
    await calls.run(RUN, null, never);
    expect(requests.map(({ headers }) => headers['svc-acting-session'])).toEqual(['ses_1', undefined]);
  });

  it('passes a refusal on unchanged', async () => {
    const error = { code: 'approval_required', message: 'wait', details: { approval_id: 'apr_1' } };
    answer = json(403, { error: { ...error, request_id: 'req_1' } });
    expect(await calls.run(RUN, null, never)).toEqual({ ok: false, error });
  });

  it.each([
    ['an error in an unknown format', json(502, {})],
    ['a reply in an unknown format', json(200, { status: 'other' })],
    ['no reply', (response: ServerResponse) => response.destroy()],
  ])('reports that it did not answer if there is %s', async (_what, given) => {
    answer = given;
    expect(await calls.run(RUN, null, never)).toMatchObject({ ok: false, error: { code: 'sidecar_unreachable' } });
    expect(requests).toHaveLength(1);
  });

  it('looks up the address for each call', async () => {
    address = null;
    expect(await calls.operations(null, 0, never)).toMatchObject({
      ok: false,
      error: { code: 'sidecar_unreachable' },
    });
    expect(requests).toHaveLength(0);
  });

  it('cancels a run with its caller', async () => {
    const left = new AbortController();
    answer = () => left.abort();
    expect(await calls.run(RUN, null, left.signal)).toMatchObject({ ok: false });
  });
});
