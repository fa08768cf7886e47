import { describe, expect, test } from 'vitest';
import { containerEnvironment, variableProblem, type ContainerSession } from './container_environment.ts';

const session: ContainerSession = {
  sessionId: 'ses_1',
  token: 'tok',
  proxyUrl: 'http://127.0.0.1:7421',
  listener: 'namespace',
  sentinels: [],
  relay: false,
};

describe('the environment of a container in proxy mode', () => {
  test('has the proxy in upper and lower case, with the session as user info', () => {
    const env = containerEnvironment(session, {});
    for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy']) {
      expect(env[name]).toBe('http://ses_1:tok@127.0.0.1:7421');
    }
    expect(env).toMatchObject({
      NO_PROXY: 'localhost,127.0.0.1,::1',
      no_proxy: 'localhost,127.0.0.1,::1',
      NODE_USE_ENV_PROXY: '1',
      GIT_HTTP_PROXY_AUTHMETHOD: 'basic',
      SVC_URL: 'http://127.0.0.1:7421',
      SVC_TOKEN: 'tok',
      SVC_SESSION_ID: 'ses_1',
    });
  });

  test('lets git use mounted repositories, unless the caller configures git', () => {
    expect(containerEnvironment(session, {})).toMatchObject({ GIT_CONFIG_KEY_0: 'safe.directory' });
    const own = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'user.name', GIT_CONFIG_VALUE_0: 'x' };
    expect(containerEnvironment(session, own)).toMatchObject(own);
  });

  test('leads the SDKs of AWS to the sidecar, unless the caller gives another endpoint', () => {
    const withAws = { ...session, sdkEndpoints: ['aws'] } as const;
    const FULL = 'AWS_CONTAINER_CREDENTIALS_FULL_URI';
    expect(containerEnvironment(withAws, {})).toMatchObject({
      [FULL]: 'http://127.0.0.1:7421/v1/sdk/aws/credentials',
      AWS_CONTAINER_AUTHORIZATION_TOKEN: 'Bearer tok',
    });
    const given = containerEnvironment(withAws, { [FULL]: 'http://localhost:1/' });
    expect([given[FULL], given['AWS_CONTAINER_AUTHORIZATION_TOKEN']]).toEqual(['http://localhost:1/', undefined]);
    expect(containerEnvironment(session, {})).not.toHaveProperty(FULL);
    const outside = { ...withAws, listener: 'gateway', proxyUrl: 'http://172.17.0.1:7421' } as const;
    expect(containerEnvironment(outside, {})).not.toHaveProperty(FULL);
  });

  test('leads libraries of Google and Azure to the listener that is the container’s alone', () => {
    const both = { ...session, sdkEndpoints: ['google', 'azure'] } as const;
    expect(containerEnvironment(both, {})).toMatchObject({
      GCE_METADATA_HOST: '127.0.0.1:7421',
      IDENTITY_ENDPOINT: 'http://127.0.0.1:7421/v1/sdk/azure/token',
      IDENTITY_HEADER: 'tok',
    });
    const given = containerEnvironment(both, { IDENTITY_ENDPOINT: 'http://localhost:1/' });
    expect([given['IDENTITY_HEADER'], given['GCE_METADATA_HOST']]).toEqual([undefined, '127.0.0.1:7421']);
    const shared = { ...both, listener: 'gateway', proxyUrl: 'http://172.17.0.1:7421' } as const;
    expect(Object.keys(containerEnvironment(shared, {})).filter((name) => /^(GCE|IDENTITY)_/.test(name))).toEqual([]);
  });

  test('has no proxy credential if the session has no token', () => {
    const env = containerEnvironment({ ...session, token: null, sdkEndpoints: ['aws'] }, {});
    expect(Object.keys(env).filter((name) => /^https?_proxy$|TOKEN/i.test(name))).toEqual([]);
  });

  test('makes the start wait for a listener inside the container’s network, but not for one outside', () => {
    expect(containerEnvironment(session, {})['SVC_PROXY_WAIT']).toBe('127.0.0.1:7421');
    const outside = { ...session, listener: 'gateway', proxyUrl: 'http://172.17.0.1:7421' } as const;
    expect(containerEnvironment(outside, {})).not.toHaveProperty('SVC_PROXY_WAIT');
    expect(containerEnvironment(outside, {})['HTTPS_PROXY']).toBe('http://ses_1:tok@172.17.0.1:7421');
  });

  test('replaces a value that the caller gave with the placeholder', () => {
    const sentinels = [{ env: 'GITHUB_TOKEN', value: 'placeholder' }];
    const env = containerEnvironment({ ...session, sentinels }, { GITHUB_TOKEN: 'real', OTHER: 'x' });
    expect(env).toMatchObject({ GITHUB_TOKEN: 'placeholder', OTHER: 'x' });
  });

  test.each(['PATH', 'LD_PRELOAD', 'DOCKER_HOST', 'SVC_TOKEN', 'HTTPS_PROXY'])(
    'a binding cannot set %s with its placeholder',
    (env) => {
      const sentinels = [{ env, value: 'planted' }];
      expect(Object.values(containerEnvironment({ ...session, sentinels }, {}))).not.toContain('planted');
    },
  );

  test('points JVMs and Chromium to the relay only if there is one', () => {
    expect(containerEnvironment(session, {})).not.toHaveProperty('JAVA_TOOL_OPTIONS');
    const env = containerEnvironment({ ...session, relay: true }, {});
    expect(env['JAVA_TOOL_OPTIONS']).toContain('-Dhttps.proxyPort=7422');
    expect(env['SVC_CHROMIUM_FLAGS']).toBe('--proxy-server=http://127.0.0.1:7422');
  });
});

describe('a variable of the caller', () => {
  test.each(['A', '_x', 'GITHUB_TOKEN', 'LANG'])('%s may be passed on', (name) => {
    expect(variableProblem(name)).toBeNull();
  });

  test.each([
    ['1A', 'is not the name'],
    ['A-B', 'is not the name'],
    ['', 'is not the name'],
    ['SVC_HOME', 'set by svc'],
    ['https_proxy', 'set by svc'],
    ['SSL_CERT_FILE', 'set by svc'],
    ['DOCKER_HOST', 'engine itself'],
    ['CONTAINERS_CONF', 'engine itself'],
    ['CONTAINER_HOST', 'engine itself'],
    ['PATH', 'start as root'],
    ['LD_PRELOAD', 'start as root'],
    ['JAVA_TOOL_OPTIONS', 'start as root'],
  ])('%j may not: %s', (name, why) => {
    expect(variableProblem(name)).toContain(why);
  });
});
