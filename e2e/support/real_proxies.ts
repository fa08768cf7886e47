import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runOk } from './program.ts';

/** Where a proxy listens, and what it knows. */
interface ProxyOptions {
  /** Readable for every user: the proxies run as one of their own. */
  readonly folder: string;
  readonly address: string;
  readonly port: number;
  /** A file as /etc/hosts. tinyproxy reads that of its machine. */
  readonly hostsFile: string;
  /** A host that it does not connect to. */
  readonly refused: string;
}

/** A proxy that companies use, which asks for a password. */
export interface RealProxy {
  readonly name: string;
  readonly password: string;
  /** Its program and its arguments. */
  readonly prepare: (options: ProxyOptions) => Promise<readonly [string, readonly string[]]>;
}

export const PROXY_USER = 'worker';

export const SQUID: RealProxy = {
  name: 'squid',
  password: 'pl@nted%word',
  prepare: async ({ folder, address, port, hostsFile, refused }) => {
    const hash = (await runOk('openssl', ['passwd', '-apr1', SQUID.password])).stdout.trim();
    writeFileSync(join(folder, 'passwords'), `${PROXY_USER}:${hash}\n`);
    const lines = [
      `http_port ${address}:${port}`,
      `auth_param basic program /usr/lib/squid/basic_ncsa_auth ${join(folder, 'passwords')}`,
      'acl known proxy_auth REQUIRED',
      `acl refused dstdomain ${refused}`,
      'http_access deny refused',
      'http_access allow known',
      'http_access deny all',
      `hosts_file ${hostsFile}`,
      'visible_hostname gate.example.test',
      'pid_filename none',
      'access_log none',
      'cache_log /dev/stderr',
      'cache deny all',
      'shutdown_lifetime 0 seconds',
      'pinger_enable off',
      '',
    ];
    writeFileSync(join(folder, 'squid.conf'), lines.join('\n'));
    return ['squid', ['-N', '-f', join(folder, 'squid.conf')]];
  },
};

export const TINYPROXY: RealProxy = {
  name: 'tinyproxy',
  // It knows no special characters.
  password: 'planted-word',
  prepare: async ({ folder, address, port, refused }) => {
    const lines = [
      `Port ${port}`,
      `Listen ${address}`,
      `BasicAuth ${PROXY_USER} ${TINYPROXY.password}`,
      'Timeout 60',
      `Filter "${join(folder, 'filter')}"`,
      'MaxClients 50',
      '',
    ];
    writeFileSync(join(folder, 'filter'), `^${refused.replaceAll('.', '[.]')}$\n`);
    writeFileSync(join(folder, 'tinyproxy.conf'), lines.join('\n'));
    return ['tinyproxy', ['-d', '-c', join(folder, 'tinyproxy.conf')]];
  },
};
