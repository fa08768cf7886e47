// Routes as Rails and old PHP frameworks do: a format after the last dot, `_method`, path headers, a front controller.
import { createServer } from 'node:http';
import { stdout } from 'node:process';

const ROUTES = [
  [/^\/v1\/refunds(?:\.[^/.?]+)?$/i, 'refund'],
  [/^\/v1\/things:batchDelete(?:\.[^/.?]+)?$/m, 'batch'],
  [/^\/users\/@me(?:\.[^/.?]+)?$/, 'me'],
  [/^\/repos\/[^/]+\/[^/]+\/merge(?:\.[^/.?]+)?$/, 'merge'],
  [/^\/v1\/[^/]+$/, 'thing'],
];

function routed(url) {
  let path = url
    .split('?')[0]
    .replace(/^.*\/index\.php(?=\/)/, '')
    .replace(/\/{2,}/g, '/')
    .replace(/(?<=.)\/+$/, '');
  try {
    path = decodeURIComponent(decodeURIComponent(path));
  } catch {
    // A path that cannot be decoded is routed as it is.
  }
  return ROUTES.find(([pattern]) => pattern.test(path.replace(/[\s\0]+$/, '').replace(/;[^/]*/g, '')))?.[1] ?? 'none';
}

const server = createServer((request, response) => {
  const { 'x-original-url': original, 'x-rewrite-url': rewritten } = request.headers;
  response.end(routed(String(original ?? rewritten ?? request.url)));
});
server.listen(0, '127.0.0.1', () => stdout.write(`port ${server.address().port}\n`));
