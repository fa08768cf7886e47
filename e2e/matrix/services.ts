import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type Response, sendJson, sendText, type ServiceHandler } from './service.ts';

const PAGE = `<!doctype html><title>page</title><p id="said">nothing yet</p><script>
fetch('/items', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"title":"a"}' })
  .then((reply) => { document.getElementById('said').textContent = 'made ' + reply.status; });
</script>`;

/** Its image arrives when its script has shown the answer on a WebSocket, or the WebSocket has closed: that ends the loading of the page. */
const SOCKET_PAGE = `<!doctype html><title>page</title><p id="said">nothing yet</p><img src="/held"><script>
const socket = new WebSocket('wss://' + location.host + '/socket');
socket.onopen = () => socket.send('hello');
socket.onmessage = ({ data }) => { document.getElementById('said').textContent = 'heard ' + data; socket.close(); };
socket.onclose = () => fetch('/closed');
</script>`;

/** An API with items: GET lists them, POST creates one; also a page whose script creates one, and one whose script opens a WebSocket. */
export function itemsApi(): ServiceHandler {
  const held: Response[] = [];
  return (request, response) => {
    if (request.path === '/closed') for (const one of held.splice(0)) sendText(one, 'image/png', '');
    if (request.path === '/held') held.push(response);
    else if (request.path === '/page') sendText(response, 'text/html', PAGE);
    else if (request.path === '/socket-page') sendText(response, 'text/html', SOCKET_PAGE);
    else if (request.method === 'POST') sendJson(response, 201, { made: true });
    else sendJson(response, 200, { items: [] });
  };
}

/** The part of GitHub Enterprise Server's API that `gh api` needs: REST below /api/v3, GraphQL beside it. */
export const githubApi: ServiceHandler = (request, response) => {
  if (request.path === '/api/graphql') sendJson(response, 200, { data: { viewer: { login: 'octo' } } });
  else if (request.path === '/api/v3/user') sendJson(response, 200, { login: 'octo' });
  else if (request.path === '/api/v3/repos/octo/demo/issues') sendJson(response, 201, { number: 1 });
  else sendJson(response, 404, { message: 'Not Found' });
};

const published = z.looseObject({
  name: z.string(),
  versions: z.record(z.string(), z.unknown()),
  _attachments: z.record(z.string(), z.object({ data: z.string() })),
});

/** An npm registry: a package is published as one document with its tarball, and read back in parts. */
export function npmRegistry(): ServiceHandler {
  const documents = new Map<string, unknown>();
  const tarballs = new Map<string, Buffer>();
  return (request, response) => {
    if (request.method === 'PUT') {
      const { _attachments, ...document } = published.parse(JSON.parse(request.body.toString('utf8')));
      for (const [name, { data }] of Object.entries(_attachments)) {
        tarballs.set(`/${document.name}/-/${name}`, Buffer.from(data, 'base64'));
      }
      documents.set(`/${document.name}`, document);
      sendJson(response, 201, { ok: true });
      return;
    }
    const tarball = tarballs.get(request.path);
    const document = documents.get(request.path);
    if (tarball !== undefined) sendText(response, 'application/octet-stream', tarball);
    else sendJson(response, document === undefined ? 404 : 200, document ?? { error: 'not found' });
  };
}

/** A simple package index (PEP 503) with one wheel. */
export function pythonIndex(project: string, wheel: { readonly name: string; readonly bytes: Buffer }): ServiceHandler {
  const digest = createHash('sha256').update(wheel.bytes).digest('hex');
  const page = `<!doctype html><a href="/packages/${wheel.name}#sha256=${digest}">${wheel.name}</a>`;
  return (request, response) => {
    if (request.path === `/simple/${project}/`) sendText(response, 'text/html', page);
    else if (request.path === `/packages/${wheel.name}`) sendText(response, 'application/octet-stream', wheel.bytes);
    else sendJson(response, 404, {});
  };
}
