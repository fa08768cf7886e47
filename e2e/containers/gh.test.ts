import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, copyFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { succeeds } from '../../tools/system_parts.mjs';
import { foundIn, searchFiles } from '../support/planted_secret.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { listen } from '../support/tls_upstream.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';

// GitHub's gh in a sealed container, with what `svc seal github` makes: against an API that accepts nothing but the token.

const TOKEN = `ghp_${randomBytes(18).toString('hex')}`;
const HOST = 'api.github.com';
const hasGh = succeeds('gh --version');

let bench: Bench;
let svc: Svc;
let api: Server;
let refused = 0;

describeContainers('gh in a container', () => {
  beforeAll(async () => {
    bench = await openBench();
    const ca = await createTestCa();
    api = createServer(await ca.issue([HOST]), ({ headers }, response) => {
      const isKnown = [`token ${TOKEN}`, `Bearer ${TOKEN}`].includes(headers.authorization ?? '');
      if (!isKnown) refused += 1;
      response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' });
      response.end(JSON.stringify(isKnown ? { login: 'octo' } : { message: 'Bad credentials' }));
    });
    const resolve = [`${HOST}:127.0.0.1:${await listen(api)}`];
    svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve, env: bench.engine.environment });
    await svc.ok(['seal', 'github', '--stdin'], { input: TOKEN });
  });
  afterAll(async () => {
    await svc.stop();
    api.closeAllConnections();
    api.close();
    bench.clear();
  });

  it.skipIf(!hasGh)('asks the API with the token, and holds a placeholder only', async () => {
    const folder = bench.folder('gh');
    copyFileSync(execFileSync('which', ['gh'], { encoding: 'utf8' }).trim(), join(folder, 'gh'));
    chmodSync(join(folder, 'gh'), 0o755);
    const script = './gh api user --jq .login && ./gh auth status && env';
    const ran = await bench.launch(svc, ['--egress=sealed'], ['sh', '-c', script], { cwd: folder });
    expect({ code: ran.code, refused, stderr: ran.code === 0 ? '' : ran.stderr }).toEqual({
      code: 0,
      refused: 0,
      stderr: '',
    });
    expect(ran.stdout).toMatch(/^octo\n/);
    expect(ran.stdout).toMatch(/^GH_TOKEN=svc-stand-in-/m);
    expect(foundIn(ran.stdout + ran.stderr, TOKEN)).toEqual([]);
    expect(searchFiles(folder, TOKEN).holding).toEqual([]);
  });
});
