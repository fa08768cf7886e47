// The control worker on workerd, as `wrangler dev` starts it, whose calls to the given sites go to a TLS server on loopback.
// `node e2e/team/workerd_program.ts '{"port": …}'`
import { connect } from 'node:tls';
import { Agent, request } from 'undici';
import { unstable_startWorker as startWorker } from 'wrangler';
import { z } from 'zod';

const options = z.object({
  port: z.number(),
  /** For what wrangler keeps. */
  folder: z.string(),
  variables: z.record(z.string(), z.string()),
  /** The server that stands for the sites, and the roots by which it is checked. */
  sitesPort: z.number(),
  sites: z.array(z.string()),
  ca: z.string(),
});

const { port, folder, variables, sitesPort, sites, ca } = options.parse(JSON.parse(process.argv[2] ?? ''));
const agent = new Agent({
  connect: ({ hostname }, done) => {
    const socket = connect({ host: '127.0.0.1', port: sitesPort, servername: hostname, ca });
    socket.once('secureConnect', () => done(null, socket));
    socket.once('error', (error) => done(error, null));
  },
});

/** Everything that the worker calls goes through here, its database too. Nothing else leaves this machine. */
async function callOut(call: Request): Promise<Response> {
  const url = new URL(call.url);
  const isSite = sites.includes(url.hostname);
  if (!isSite && url.hostname !== '127.0.0.1') throw new Error(`${url.hostname} is not there`);
  const reply = await request(url, {
    method: call.method,
    headers: Object.fromEntries(call.headers),
    body: new Uint8Array(await call.arrayBuffer()),
    ...(isSite && { dispatcher: agent }),
  });
  const headers = Object.entries(reply.headers).map(([name, value]): [string, string] => [name, String(value)]);
  return new Response(await reply.body.arrayBuffer(), { status: reply.statusCode, headers });
}

const worker = await startWorker({
  config: 'wrangler.toml',
  bindings: Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, { type: 'plain_text', value }])),
  dev: {
    server: { hostname: '127.0.0.1', port },
    inspector: false,
    watch: false,
    persist: folder,
    outboundService: callOut,
  },
});
await worker.ready;
process.on('SIGTERM', () => void worker.dispose().finally(() => process.exit()));
