// The strict router of Fastify, and with `lenient` the one with every option that makes it match more.
import { argv, stdout } from 'node:process';
import fastify from 'fastify';

const lenient = {
  caseSensitive: false,
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: true,
  useSemicolonDelimiter: true,
};
const app = fastify({ routerOptions: argv[2] === 'lenient' ? lenient : {} });
const route = (path, name) => app.post(path, (_request, reply) => reply.send(name));
route('/v1/refunds', 'refund');
route('/v1/things::batchDelete', 'batch');
route('/users/@me', 'me');
route('/repos/:owner/:repo/merge', 'merge');
route('/v1/:thing', 'thing');
await app.listen({ port: 0, host: '127.0.0.1' });
stdout.write(`port ${app.server.address().port}\n`);
