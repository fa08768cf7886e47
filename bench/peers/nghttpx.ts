import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HTTP2_HOST, type Upstream } from '../load/nginx.ts';
import { freePort } from '../load/ports.ts';
import { startServer, textOf, type Tool } from '../load/programs.ts';
import type { Proxy } from './proxy.ts';

const PROGRAM = '/usr/sbin/nghttpx';

export const NGHTTPX: Tool = { name: 'nghttpx', probe: `test -x ${PROGRAM}`, install: 'apt-get install nghttp2-proxy' };

/** The configuration closest to svc: HTTP/2 over TLS on both sides, the bearer added, an access log. It knows no tunnels. */
function configuration(directory: string, port: number, upstream: Upstream): string {
  return `frontend=127.0.0.1,${port}
backend=127.0.0.1,${upstream.http2Port};;tls;proto=h2;sni=${HTTP2_HOST}
private-key-file=${upstream.keyFile}
certificate-file=${upstream.certFile}
cacert=${upstream.caFile}
add-request-header=authorization: Bearer ${upstream.bearer}
no-via=yes
no-add-x-forwarded-proto=yes
workers=1
single-process=yes
accesslog-file=${directory}/access.log
errorlog-file=${directory}/error.log
pid-file=${directory}/nghttpx.pid
`;
}

/** nghttpx as one process, in front of the upstream's own host. */
export async function startNghttpx(parent: string, upstream: Upstream): Promise<Proxy> {
  const directory = join(parent, 'nghttpx');
  mkdirSync(directory);
  const port = await freePort();
  const file = join(directory, 'nghttpx.conf');
  writeFileSync(file, configuration(directory, port, upstream), { mode: 0o600 });
  const log = join(directory, 'error.log');
  const running = await startServer(PROGRAM, [`--conf=${file}`], { port, log: () => textOf(log) });
  const version = /nghttp2\/(\S+)/.exec(spawnSync(PROGRAM, ['--version'], { encoding: 'utf8' }).stdout)?.[1] ?? '';
  return {
    ...running,
    name: 'nghttpx',
    version,
    kind: 'front',
    port,
    authority: (host) => `${host}:443`,
    user: '',
    password: '',
    caFile: upstream.caFile,
    companion: null,
  };
}
