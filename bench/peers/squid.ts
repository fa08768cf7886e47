import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { freePort } from '../load/ports.ts';
import { CREDENTIALED_HOST, PASSTHROUGH_HOST, type Upstream } from '../load/nginx.ts';
import { startServer, textOf, type Tool } from '../load/programs.ts';
import { otherBoundHosts, type Proxy } from './proxy.ts';
import { BINDINGS } from './svc.ts';

const PROGRAM = '/usr/sbin/squid';
const LIBRARY = '/usr/lib/squid';
const CERTGEN = `${LIBRARY}/security_file_certgen`;

export const SQUID: Tool = {
  name: 'squid',
  probe: `test -x ${PROGRAM} && test -x ${CERTGEN}`,
  install: 'apt-get install squid-openssl',
};

interface Layout {
  readonly directory: string;
  readonly port: number;
  readonly upstream: Upstream;
}

/**
 * The squid configuration closest to svc: proxy authentication, every tunnel bumped with the name of its ClientHello, the
 * bearer added for a list of names, an access log, no cache. Its upstream connections outlive a tunnel.
 */
function configuration({ directory, port, upstream }: Layout): string {
  return `http_port 127.0.0.1:${port} ssl-bump tls-cert=${directory}/ca.pem tls-key=${directory}/ca.key generate-host-certificates=on dynamic_cert_mem_cache_size=4MB
sslcrtd_program ${CERTGEN} -s ${directory}/certificates -M 4MB
sslcrtd_children 2 startup=1 idle=1
tls_outgoing_options cafile=${upstream.caFile}
acl at_hello at_step SslBump1
ssl_bump peek at_hello
ssl_bump bump all
auth_param basic program ${LIBRARY}/basic_fake_auth
auth_param basic children 1
auth_param basic credentialsttl 2 hours
acl signed_in proxy_auth REQUIRED
acl bound dstdomain "${directory}/bound_hosts"
request_header_access Authorization deny bound
request_header_add Authorization "Bearer ${upstream.bearer}" bound
http_access allow signed_in
http_access deny all
cache deny all
cache_mem 8 MB
via off
forwarded_for delete
hosts_file ${directory}/hosts
access_log stdio:${directory}/access.log squid
cache_log ${directory}/cache.log
cache_store_log none
pid_filename ${directory}/squid.pid
coredump_dir ${directory}
max_filedescriptors 8192
shutdown_lifetime 0 seconds
pinger_enable off
netdb_filename none
visible_hostname bench
${process.getuid?.() === 0 ? 'cache_effective_user proxy\n' : ''}`;
}

/** Squid drops root, so its folder must belong to the user that it switches to. */
function handOver(directory: string): void {
  const passwd = readFileSync('/etc/passwd', 'utf8');
  const [, , user, group] = /^proxy:.*$/m.exec(passwd)?.[0].split(':') ?? [];
  if (process.getuid?.() !== 0 || user === undefined || group === undefined) return;
  for (const path of ['', 'ca.pem', 'ca.key', 'bound_hosts', 'hosts']) {
    chownSync(join(directory, path), Number(user), Number(group));
  }
}

async function writeFiles(layout: Layout): Promise<string> {
  const { directory } = layout;
  const ca = await generate([{ name: 'commonName', value: 'squid bench CA' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, digitalSignature: true, critical: true },
    ],
  });
  const dstdomains = otherBoundHosts(BINDINGS - 1).map((host) => host.replace(/^\*/, ''));
  const files = {
    'ca.pem': ca.cert,
    'ca.key': ca.private,
    bound_hosts: [...dstdomains, CREDENTIALED_HOST, ''].join('\n'),
    hosts: `127.0.0.1 ${CREDENTIALED_HOST} ${PASSTHROUGH_HOST}\n`,
    'squid.conf': configuration(layout),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return join(directory, 'squid.conf');
}

function makeCertificateStore(directory: string): void {
  const store = join(directory, 'certificates');
  const made = spawnSync(CERTGEN, ['-c', '-s', store, '-M', '4MB'], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`security_file_certgen made no store: ${made.stdout}${made.stderr}`);
  if (process.getuid?.() === 0) spawnSync('chown', ['-R', 'proxy:proxy', store]);
}

/** Squid as one process with its helper processes. */
export async function startSquid(parent: string, upstream: Upstream): Promise<Proxy> {
  const directory = join(parent, 'squid');
  mkdirSync(directory);
  chmodSync(parent, 0o755);
  const port = await freePort();
  const file = await writeFiles({ directory, port, upstream });
  makeCertificateStore(directory);
  handOver(directory);
  const log = join(directory, 'cache.log');
  const running = await startServer(PROGRAM, ['-N', '-f', file], { port, log: () => textOf(log) });
  const version = /Version (\S+)/.exec(spawnSync(PROGRAM, ['-v'], { encoding: 'utf8' }).stdout)?.[1] ?? '';
  return {
    ...running,
    name: 'squid',
    version,
    kind: 'tunnel',
    port,
    authority: (host) => `${host}:${upstream.port}`,
    user: 'bench',
    password: 'bench',
    caFile: join(directory, 'ca.pem'),
    companion: null,
  };
}
