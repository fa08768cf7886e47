import { describe, expect, test } from 'vitest';
import {
  CA_VARIABLES,
  mayHoldSentinel,
  proxyUrlFor,
  sessionEnvironment,
  type SessionAccess,
} from './session_environment.ts';

const session: SessionAccess = {
  sessionId: 'ses_1',
  proxyUrl: 'http://ses_1:token@127.0.0.1:7421',
  caBundlePath: '/home/u/.svc/sessions/ses_1/bundle.pem',
  sentinels: [{ env: 'GITHUB_TOKEN', value: 'ghp_placeholder' }],
};

describe('the environment of a command in a session', () => {
  test('has the proxy in upper and lower case, and excludes loopback', () => {
    const env = sessionEnvironment({}, session);
    for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy']) {
      expect(env[name]).toBe(session.proxyUrl);
    }
    expect(env).toMatchObject({ NO_PROXY: 'localhost,127.0.0.1,::1', no_proxy: 'localhost,127.0.0.1,::1' });
    expect(env).toMatchObject({ NODE_USE_ENV_PROXY: '1', SVC_SESSION_ID: 'ses_1' });
  });

  test('sets every CA variable to the bundle of the session', () => {
    const env = sessionEnvironment({ SSL_CERT_FILE: '/corp.pem' }, session);
    expect(CA_VARIABLES.filter((name) => env[name] !== session.caBundlePath)).toEqual([]);
  });

  test('keeps the user’s variables', () => {
    const inherited = { PATH: '/bin', HOME: '/home/u', LANG: 'C', OPENAI_BASE_URL: 'x', EMPTY: '' };
    expect(sessionEnvironment(inherited, session)).toMatchObject(inherited);
  });

  test('keeps harmless npm settings, and variables with a similar name', () => {
    const inherited = {
      NPM_CONFIG_REGISTRY: 'https://registry.example.test/',
      npm_config_userconfig: '/home/u/.npmrc',
      npm_config_cache: '/home/u/.npm',
      NPM_TOKEN: 'x',
      NPM_PACKAGE: 'x',
    };
    expect(sessionEnvironment(inherited, session)).toMatchObject(inherited);
  });

  test('leads the SDKs of AWS to the sidecar if the session has keys for them, and to nothing else', () => {
    const inherited = {
      AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/role',
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: '/token',
      AWS_CONTAINER_AUTHORIZATION_TOKEN: 'of another',
      AWS_REGION: 'eu-central-1',
    };
    expect(sessionEnvironment(inherited, session)).toMatchObject(inherited);
    const env = sessionEnvironment(inherited, { ...session, sdkEndpoints: ['aws'] });
    expect(Object.entries(env).filter(([name]) => name.startsWith('AWS_') && name !== 'AWS_CA_BUNDLE')).toEqual([
      ['AWS_CONTAINER_AUTHORIZATION_TOKEN', 'Bearer token'],
      ['AWS_REGION', 'eu-central-1'],
      ['AWS_CONTAINER_CREDENTIALS_FULL_URI', 'http://127.0.0.1:7421/v1/sdk/aws/credentials'],
    ]);
  });

  test('leads libraries of Google and Azure to the session alone, and to nothing else', () => {
    const inherited = { GCE_METADATA_IP: 'other', MSI_ENDPOINT: 'http://other/', IDENTITY_SERVER_THUMBPRINT: 'a' };
    expect(sessionEnvironment(inherited, session)).toMatchObject(inherited);
    const env = sessionEnvironment(inherited, {
      ...session,
      sdkEndpoints: ['google', 'azure'],
      metadataHost: '127.0.0.1:40000',
    });
    expect(Object.entries(env).filter(([name]) => /^(GCE|MSI|IDENTITY)_/.test(name))).toEqual([
      ['GCE_METADATA_IP', '127.0.0.1:40000'],
      ['IDENTITY_ENDPOINT', 'http://127.0.0.1:7421/v1/sdk/azure/token'],
      ['IDENTITY_HEADER', 'token'],
      ['GCE_METADATA_HOST', '127.0.0.1:40000'],
      ['GCE_METADATA_ROOT', '127.0.0.1:40000'],
    ]);
  });

  test('puts a placeholder into NPM_TOKEN', () => {
    const sentinels = [{ env: 'NPM_TOKEN', value: 'stand-in' }];
    expect(sessionEnvironment({}, { ...session, sentinels })['NPM_TOKEN']).toBe('stand-in');
  });

  test.each([
    'SVC_VAULT_KEY',
    'SVC_DATABASE_TOKEN',
    'SVC_HOME',
    'svc_vault_key',
    'CODEHOST_OAUTH_CLIENT_SECRET',
    'GENERAL_OAUTH_CLIENT_SECRET',
    'npm_config__authToken',
    'npm_config_//registry.example.test/:_authToken',
    'npm_config__password',
    'npm_config_token',
    'npm_lifecycle_event',
    'npm_package_name',
    'npm_execpath',
    'npm_config_local_prefix',
    'npm_config_proxy',
    'NPM_CONFIG_HTTPS_PROXY',
    'npm_config_https-proxy',
    'npm_config_noproxy',
    'npm_config_strict_ssl',
    'npm_config_ca',
    'npm_config_//registry.example.test/:certfile',
    'INIT_CWD',
    'ALL_PROXY',
    'all_proxy',
    'SSL_CERT_DIR',
  ])('does not pass %s on', (name) => {
    expect(Object.values(sessionEnvironment({ [name]: 'planted' }, session))).not.toContain('planted');
  });

  test('an inherited proxy exception does not bypass the proxy', () => {
    const env = sessionEnvironment({ NO_PROXY: 'api.github.com', no_proxy: '*' }, session);
    expect([env['NO_PROXY'], env['no_proxy']]).toEqual(['localhost,127.0.0.1,::1', 'localhost,127.0.0.1,::1']);
  });

  test('a placeholder replaces a real credential in its variable', () => {
    expect(sessionEnvironment({ GITHUB_TOKEN: 'ghp_real' }, session)['GITHUB_TOKEN']).toBe('ghp_placeholder');
  });

  test.each([
    'PATH',
    'LD_PRELOAD',
    'NODE_OPTIONS',
    'BASH_ENV',
    'GIT_SSH_COMMAND',
    'npm_config_script_shell',
    'npm_config_registry',
    'HTTPS_PROXY',
    'SSL_CERT_FILE',
    'A B',
    '',
  ])('a binding cannot set %j with its placeholder', (name) => {
    expect(mayHoldSentinel(name)).toBe(false);
    const sentinels = [{ env: name, value: 'planted' }];
    expect(Object.values(sessionEnvironment({}, { ...session, sentinels }))).not.toContain('planted');
  });
});

test.each(['http://127.0.0.1:7421', 'http://a:b@127.0.0.1:7421/'])(
  'the proxy URL made of %s carries the session',
  (url) => {
    expect(proxyUrlFor(url, 'ses_1', 'tok-en_1')).toBe('http://ses_1:tok-en_1@127.0.0.1:7421');
  },
);
