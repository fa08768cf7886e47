import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { AWS_CREDENTIALS_PATH } from '../../shared/net/sdk_endpoints.ts';
import { HOST_TOKEN, LocalApiBench } from '../testing/local_api_bench.ts';

const HOUR_MS = 3_600_000;
const signing = (path: string, accessKeyId: string, more: Partial<HostBinding> = {}): HostBinding => ({
  ...bearerBinding('s3.example.test', { credential: { owner: 'personal', path } }),
  injection: { scheme: 'sigv4-resign', accessKeyId, region: 'eu-central-1', service: 's3' },
  ...more,
});

let bench: LocalApiBench;
beforeEach(async () => {
  bench = await LocalApiBench.start();
});
afterEach(() => bench.stop());

const ask = (token: string | null) => bench.call('GET', AWS_CREDENTIALS_PATH, undefined, token);
const open = async (body: object = {}) => {
  const { id, token } = await bench.createSession(body);
  return { session: bench.sessions.get(id)!, token };
};

describe('container credentials of AWS', () => {
  it('are placeholders under the access key id of the binding, and end within the hour', async () => {
    bench.bindings = [bearerBinding('api.example.test'), signing('user/aws', 'AKIAIOSFODNN7EXAMPLE')];
    const { session, token } = await open();
    const reply = await ask(token);
    expect([reply.status, reply.body]).toEqual([
      200,
      {
        AccessKeyId: 'AKIAIOSFODNN7EXAMPLE',
        SecretAccessKey: 'placeholder-that-the-proxy-replaces',
        Token: 'placeholder',
        Expiration: new Date(Math.min(bench.clock.now() + HOUR_MS, session.expiresAt)).toISOString(),
      },
    ]);
  });

  it('end with the session', async () => {
    bench.bindings = [signing('user/aws', 'minted')];
    const { session, token } = await open({ ttl_seconds: 300 });
    expect((await ask(token)).body).toMatchObject({
      AccessKeyId: 'minted',
      Expiration: new Date(session.expiresAt).toISOString(),
    });
    await bench.sessions.end(session.id);
    expect(await ask(token)).toMatchObject({ status: 401 });
  });

  it('have the sentinel of a binding that swaps one, because it signs with nothing else', async () => {
    bench.bindings = [
      signing('user/aws', 'AKIAREAL', { emit: { mechanism: 'sentinel-swap', sentinel: 'AKIASENTINEL00000000' } }),
    ];
    const { token } = await open();
    const reply = await ask(token);
    expect(reply.body).toMatchObject({ AccessKeyId: 'AKIASENTINEL00000000' });
    expect(reply.text).not.toContain('AKIAREAL');
  });

  it('are those of the account that the session chose', async () => {
    bench.bindings = [
      signing('user/home', 'AKIAHOME', { id: 'bnd_1' }),
      signing('user/work', 'AKIAWORK', { id: 'bnd_2' }),
    ];
    const use_secrets = [{ reference: 'vault://user/work', by: 'option', from: null }];
    const { token } = await open({ use_secrets });
    expect((await ask(token)).body).toMatchObject({ AccessKeyId: 'AKIAWORK' });
  });

  it('are told of when the session starts, and only if a binding signs', async () => {
    const start = () => bench.call('POST', '/v1/sandbox-proxy/sessions', {}, HOST_TOKEN);
    expect((await start()).body).not.toHaveProperty('sdk_endpoints');
    const { token } = await open();
    expect(await ask(token)).toMatchObject({ status: 404, code: 'not_found' });
    bench.bindings = [signing('user/aws', 'minted')];
    expect((await start()).body).toMatchObject({ sdk_endpoints: ['aws'] });
  });

  it('are for a session only, and inside a container for its own', async () => {
    bench.bindings = [signing('user/aws', 'minted')];
    for (const token of [null, HOST_TOKEN, 'svc_session_other']) {
      expect(await ask(token)).toMatchObject({ status: 401, code: 'unauthenticated' });
    }
    const [one, two] = [await open(), await open()];
    const inside = (token: string) => bench.callFromContainer(one.session, AWS_CREDENTIALS_PATH, token);
    expect([(await inside(one.token)).code, (await inside(two.token)).code]).toEqual(['', 'unauthenticated']);
  });
});
