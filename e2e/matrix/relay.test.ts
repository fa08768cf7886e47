import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startWorld, type World } from '../support/world.ts';

const HOST = 'api.example.test';
/** Prints the proxy's answer to CONNECT and the service's answer, with only the relay from the environment. */
const ASK = `/usr/bin/env -i curl -k -s -o /dev/null -w '%{http_connect} %{http_code}\n' -x "$SVC_RELAY_URL" https://${HOST}/`;
const NOBODY = 'setpriv --reuid=65534 --regid=65534 --clear-groups';
let world: World;

beforeAll(async () => {
  world = await startWorld([HOST]);
  await world.svc.secret('user/api', 'a-token-of-the-relay-test');
  await world.svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/api' });
});
afterAll(() => world.stop());

describe('svc run --relay', () => {
  it('authenticates for the user who started it, until the command ends', async () => {
    const said = await world.svc.ok(['run', '--relay', '--', 'sh', '-c', `echo "$SVC_RELAY_URL"; ${ASK}`]);
    const [url = '', answer] = said.split('\n');
    expect(answer).toBe('200 200');
    expect(world.upstream.last().headers('authorization')).toEqual(['Bearer a-token-of-the-relay-test']);
    await expect(fetch(url)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  });

  it('passes every other user to the proxy, which refuses and records', async ({ skip }) => {
    if (process.getuid?.() !== 0) skip('only root can become another user: run the tests as root');
    world.upstream.reset();
    const said = await world.svc.ok(['run', '--relay', '--', 'sh', '-c', `${NOBODY} ${ASK} || true`]);
    expect(said).toBe('407 000\n');
    expect(world.upstream.requests).toEqual([]);
    const refused = (await world.svc.events()).at(-1);
    expect(refused).toMatchObject({
      type: 'sandbox.proxy.rejected',
      session_id: null,
      data: { 'svc.proxy.reason': 'proxy_authentication_required' },
    });
  });

  it('does not expose a token to other programs or users', async () => {
    const script = 'printf "%s\\n" "$SVC_RELAY_URL" "$SVC_CHROMIUM_FLAGS" "$JAVA_TOOL_OPTIONS"; echo "$HTTPS_PROXY"';
    const lines = (await world.svc.ok(['run', '--relay', '--', 'sh', '-c', script])).trim().split('\n');
    const token = new URL(lines.pop() ?? '').password;
    expect(token.length).toBeGreaterThan(20);
    expect(lines.join('\n')).not.toContain(token);
  });
});
