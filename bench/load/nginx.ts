import { randomBytes } from 'node:crypto';
import { mkdirSync, openSync, truncateSync, closeSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createTestCa } from '../../e2e/support/test_ca.ts';
import { freePort } from './ports.ts';
import { type Running, startServer, textOf, type Tool } from './programs.ts';

const NGINX_PROGRAM = '/usr/sbin/nginx';

export const NGINX: Tool = {
  name: 'nginx',
  probe: `test -x ${NGINX_PROGRAM}`,
  install: 'apt-get install nginx-light',
};

/** The credentialed host, and one without a binding. */
export const CREDENTIALED_HOST = 'localhost';
export const PASSTHROUGH_HOST = 'bulk.localhost';
/** Credentialed too, with a port of its own that speaks HTTP/2. */
export const HTTP2_HOST = 'http2.localhost';

export const BULK_BYTES = 256 * 1024 * 1024;
const REPLY_64K_BYTES = 64 * 1024;

/** The upstream of every measurement. Both hosts of HTTP/1.1 use one port; the credentialed one answers 401 without its bearer. */
export interface Upstream extends Running {
  readonly port: number;
  readonly http2Port: number;
  readonly caFile: string;
  /** Its own certificate and key, shared with other upstreams. */
  readonly certFile: string;
  readonly keyFile: string;
  readonly bearer: string;
  /** A file of `BULK_BYTES` to upload to `/upload`. */
  readonly bulkFile: string;
}

function makeFiles(directory: string): string {
  mkdirSync(join(directory, 'www'));
  mkdirSync(join(directory, 'temp'));
  writeFileSync(join(directory, 'www', '64k'), randomBytes((REPLY_64K_BYTES * 3) / 4).toString('base64'));
  const bulk = join(directory, 'www', 'bulk');
  closeSync(openSync(bulk, 'w'));
  truncateSync(bulk, BULK_BYTES);
  return bulk;
}

const SMALL_REPLY = '{"id":4711,"name":"a small reply","created_at":"2024-05-01T12:00:00Z","items":[1,2,3]}';

/** Debian's nginx-light has WebDAV's PUT, which reads an upload to its end; a plain `return` would answer before. */
function configuration(directory: string, port: number, http2Port: number, bearer: string): string {
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${directory}/temp/${kind};`)
    .join('\n  ');
  return `daemon off;
master_process off;
error_log ${directory}/nginx.log error;
pid ${directory}/nginx.pid;
worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
  ${temp}
  access_log off;
  default_type application/json;
  keepalive_requests 1000000000;
  keepalive_timeout 900s;
  client_max_body_size 0;
  ssl_certificate ${directory}/leaf.pem;
  ssl_certificate_key ${directory}/leaf.key;
  map $http_authorization $admitted { default 0; "Bearer ${bearer}" 1; }
  server {
    listen 127.0.0.1:${port} ssl;
    server_name ${CREDENTIALED_HOST};
    root ${directory}/www;
    if ($admitted = 0) { return 401; }
    location = /small { return 200 '${SMALL_REPLY}'; }
  }
  server {
    listen 127.0.0.1:${http2Port} ssl http2;
    server_name ${HTTP2_HOST};
    if ($admitted = 0) { return 401; }
    location = /small { return 200 '${SMALL_REPLY}'; }
  }
  server {
    listen 127.0.0.1:${port} ssl;
    server_name ${PASSTHROUGH_HOST};
    root ${directory}/www;
    location = /upload { root ${directory}/temp; dav_methods PUT; }
  }
}
`;
}

/** Starts nginx as one process of this user, with all its files below `directory`. Its certificate is valid for `moreHosts` too. */
export async function startNginx(directory: string, moreHosts: readonly string[] = []): Promise<Upstream> {
  const ca = await createTestCa();
  const leaf = await ca.issue([CREDENTIALED_HOST, PASSTHROUGH_HOST, HTTP2_HOST, ...moreHosts]);
  const certFile = join(directory, 'leaf.pem');
  const keyFile = join(directory, 'leaf.key');
  writeFileSync(certFile, leaf.cert);
  writeFileSync(keyFile, leaf.key, { mode: 0o600 });
  const bulkFile = makeFiles(directory);
  const bearer = `bench_${randomBytes(24).toString('base64url')}`;
  const [port, http2Port] = [await freePort(), await freePort()];
  const file = join(directory, 'nginx.conf');
  writeFileSync(file, configuration(directory, port, http2Port, bearer));
  const log = join(directory, 'nginx.log');
  const running = await startServer(NGINX_PROGRAM, ['-c', file, '-p', directory, '-e', log], {
    port,
    log: () => textOf(log),
  });
  return { ...running, port, http2Port, caFile: ca.file, certFile, keyFile, bearer, bulkFile };
}
