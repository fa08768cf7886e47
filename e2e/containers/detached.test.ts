import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { sampleOf } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { waitFor } from '../support/wait_for.ts';
import { connectAs } from './connect_as.ts';
import { type ContainerWorld, describeContainers, startContainerWorld } from './container_world.ts';

const HOST = 'api.example.test';
const TOKEN = plantSecret();
const detached = z.object({ session_id: z.string(), container_id: z.string() });
let world: ContainerWorld;

const svc = (...args: string[]): Promise<string> => world.svc.ok(args, { env: world.bench.engine.environment });
const connectStatus = `curl -s -o /dev/null -w '%{http_connect} %{http_code}\n' https://${HOST}/loop || true`;

async function launchDetached(name: string, command: readonly string[], flags: readonly string[] = []) {
  const done = await world.launch(['--detach', '--name', name, '--json', ...flags], command);
  expect(done).toMatchObject({ code: 0 });
  return detached.parse(JSON.parse(done.stdout));
}

describeContainers('svc launch --detach', () => {
  beforeAll(async () => {
    world = await startContainerWorld([HOST]);
    await world.svc.secret('user/api', TOKEN);
    await world.svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/api' });
  });
  afterAll(() => world.stop());

  describe('a session that runs', () => {
    let made: z.infer<typeof detached>;
    beforeAll(async () => {
      made = await launchDetached('worker', ['sh', '-c', `while :; do ${connectStatus}; sleep 0.2; done`]);
    });

    it('continues on its own, with the credential', async () => {
      await waitFor('requests of the agent', () => world.upstream.requests.length > 2);
      expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
    });

    it('is listed by id and name, with its image', async () => {
      const listed = await svc('sessions', 'list');
      expect(listed).toContain(made.session_id);
      expect(listed).toContain('worker');
      expect(listed).toContain(world.bench.images.debian);
    });

    it('is shown with its container, its egress and no unsealed credential', async () => {
      const shown = await svc('sessions', 'show', 'worker');
      expect(shown).toContain(made.container_id);
      expect(shown).toMatch(/egress\s+open/);
      expect(shown).toMatch(/unsealed\s+no credential/);
      const record: unknown = JSON.parse(await svc('sessions', 'show', made.session_id, '--json'));
      expect(record).toMatchObject({
        session_id: made.session_id,
        name: 'worker',
        sandbox: { mode: 'docker', container_id: made.container_id, egress: 'open', unsealed: [] },
      });
      expect(JSON.stringify(record)).not.toContain('token');
    });

    it('keeps its name: another one of that name is refused', async () => {
      const second = await world.launch(['--detach', '--name', 'worker'], ['sleep', '600']);
      expect(second.code).toBe(125);
      expect(second.stderr).toContain('worker');
      expect(await world.bench.containersOf(world.svc)).toEqual([made.container_id]);
    });

    it('prints its output with svc sessions logs', async () => {
      const said = await waitFor('output', async () => {
        const lines = await svc('sessions', 'logs', 'worker');
        return lines.includes('\n') && lines;
      });
      expect(said).toMatch(/^(200 200\n)+/);
    });

    it('survives the end of the CLI that started it, and ends with svc sessions stop', async () => {
      const variables = await world.bench.engine.docker(
        'inspect',
        '--format',
        '{{json .Config.Env}}',
        made.container_id,
      );
      const proxy = /HTTPS_PROXY=http:\/\/([^:]+):([^@]+)@/.exec(variables);
      await svc('sessions', 'stop', 'worker');
      expect(await world.bench.containersOf(world.svc)).toEqual([]);
      expect(await svc('sessions', 'list')).not.toContain(made.session_id);
      expect(await statusOf(proxy?.[1] ?? '', proxy?.[2] ?? '')).toBe(407);
    });
  });

  it('keeps the output of an ended command until it is stopped, but revokes its token', async () => {
    const made = await launchDetached('brief', ['sh', '-c', 'echo said; echo "$HTTPS_PROXY"; exit 3']);
    await waitFor('the end of the session', async () => {
      const shown = JSON.parse(await svc('sessions', 'list', '--json'));
      return JSON.stringify(shown).includes('"ended"');
    });
    const said = await svc('sessions', 'logs', 'brief');
    expect(said).toContain('said');
    const proxy = /http:\/\/([^:]+):([^@]+)@/.exec(said);
    expect(proxy?.[1]).toBe(made.session_id);
    expect(await statusOf(made.session_id, proxy?.[2] ?? '')).toBe(407);
    await svc('sessions', 'stop', 'brief');
    expect(await world.bench.containersOf(world.svc)).toEqual([]);
  });

  it('explains that a session does not exist', async () => {
    for (const verb of sampleOf(['stop', 'show', 'logs'], 1)) {
      const done = await world.svc.cli(['sessions', verb, 'nobody']);
      expect(done.code).toBe(1);
      expect(done.stderr).toContain('"nobody"');
    }
  });
});

/** The answer of the host's proxy to a CONNECT with this token. */
function statusOf(session: string, token: string): Promise<number> {
  return connectAs(world.svc.runFile.proxy_url, session, token, HOST);
}
