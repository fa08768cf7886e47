import { expect, test } from 'vitest';
import { serverDirectories } from '../../machine/server_directories.ts';
import { launchEnvironment } from './launch_environment.ts';

const directories = serverDirectories('/h/mcp', 'mcp_1');
const environment = (own: Record<string, string> = {}, gateway: Record<string, string> = {}) =>
  launchEnvironment({ gateway, directories, own, runId: 'abc.1' });

test('holds where programs are, directories of its own, and its own variables, and nothing else', () => {
  const gateway = {
    PATH: '/bin',
    LANG: 'de_DE.UTF-8',
    TZ: 'Europe/Oslo',
    SVC_TOKEN: 'x',
    HTTPS_PROXY: 'x',
    OPENAI_API_KEY: 'x',
    HOME: '/home/me',
    NODE_OPTIONS: '--require x',
  };
  const env = environment({ OWN: 'mine' }, gateway);
  expect(env).toMatchObject({
    PATH: '/bin',
    LANG: 'de_DE.UTF-8',
    TZ: 'Europe/Oslo',
    OWN: 'mine',
    HOME: '/h/mcp/servers/mcp_1/home',
    TMPDIR: '/h/mcp/servers/mcp_1/tmp',
  });
  expect(Object.values(env)).not.toContain('x');
  expect(env['NODE_OPTIONS']).toBeUndefined();
});

test('trusts the certificates that the machine trusts, unless it has its own', () => {
  const gateway = { NODE_EXTRA_CA_CERTS: '/etc/ca.pem', SSL_CERT_FILE: '/etc/ca.pem', SSL_CERT_DIR: '/etc/certs' };
  expect(environment({}, gateway)).toMatchObject(gateway);
  expect(environment({ SSL_CERT_FILE: '/own.pem' }, gateway)).toMatchObject({ ...gateway, SSL_CERT_FILE: '/own.pem' });
});

test('a package that was fetched before is started without asking its registry', () => {
  expect(environment({ npm_config_prefer_offline: 'false' })).toMatchObject({ npm_config_prefer_offline: 'true' });
});

test('no configuration turns install scripts on, moves the home, or passes for the service', () => {
  const env = environment({
    npm_config_ignore_scripts: 'false',
    NPM_CONFIG_IGNORE_SCRIPTS: 'false',
    UV_NO_BUILD: '0',
    HOME: '/home/me',
    SVC_TOKEN: 'y',
    svc_home: 'y',
    PATH: '/evil',
    MCP_GATEWAY_RUN: 'other',
  });
  expect(env).toMatchObject({ npm_config_ignore_scripts: 'true', UV_NO_BUILD: '1', HOME: directories.home });
  expect(env).toMatchObject({ PATH: '/usr/local/bin:/usr/bin:/bin', MCP_GATEWAY_RUN: 'abc.1' });
  expect(Object.keys(env).filter((name) => /^svc_/i.test(name) || name === 'NPM_CONFIG_IGNORE_SCRIPTS')).toEqual([]);
});
