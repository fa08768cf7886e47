import { expect, test } from 'vitest';
import { serverDirectories } from '../../machine/server_directories.ts';
import { launchEnvironment } from './launch_environment.ts';

const directories = serverDirectories('/h/mcp', 'mcp_1');
const environment = (own: Record<string, string> = {}, gateway: Record<string, string> = {}) =>
  launchEnvironment({ gateway, directories, own, runId: 'abc.1' });

test('contains only PATH, its own directories and its own variables', () => {
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

test("trusts the machine's certificates, unless it sets its own", () => {
  const gateway = { NODE_EXTRA_CA_CERTS: '/etc/ca.pem', SSL_CERT_FILE: '/etc/ca.pem', SSL_CERT_DIR: '/etc/certs' };
  expect(environment({}, gateway)).toMatchObject(gateway);
  expect(environment({ SSL_CERT_FILE: '/own.pem' }, gateway)).toMatchObject({ ...gateway, SSL_CERT_FILE: '/own.pem' });
});

test('starts a cached package without contacting its registry', () => {
  expect(environment({ npm_config_prefer_offline: 'false' })).toMatchObject({ npm_config_prefer_offline: 'true' });
});

test('a configuration cannot enable install scripts, move the home or set SVC_ variables', () => {
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
