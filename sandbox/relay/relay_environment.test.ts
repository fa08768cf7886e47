import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startDataPlane, type DataPlane } from '../../sidecar/testing/data_plane.ts';
import { javaToolOptions, openRelay } from './relay_environment.ts';

let plane: DataPlane;
let folder: string;

beforeEach(async () => {
  plane = await startDataPlane();
  folder = mkdtempSync(join(tmpdir(), 'svc-relay-'));
  writeFileSync(join(folder, 'bundle.pem'), plane.caPem);
});
afterEach(async () => {
  await plane.stop();
  rmSync(folder, { recursive: true });
});

const session = (token: string) => ({
  proxyUrl: `http://ses_test:${token}@127.0.0.1:${plane.port}`,
  caBundlePath: join(folder, 'bundle.pem'),
});

test.skipIf(process.platform !== 'linux')('opens a relay and says how JVMs and Chromium reach it', async () => {
  const opened = await openRelay(session(plane.token), { JAVA_TOOL_OPTIONS: '-Xmx1g' }, process.getuid?.() ?? null);
  if (!opened.ok) throw new Error(opened.error.message);
  const { variables, close } = opened.value;
  const { port } = new URL(variables['SVC_RELAY_URL'] ?? '');
  expect(variables['JAVA_TOOL_OPTIONS']).toMatch(
    new RegExp(`^-Xmx1g -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=${port} `),
  );
  expect(variables['SVC_CHROMIUM_FLAGS']).toMatch(
    new RegExp(`^--proxy-server=http://127.0.0.1:${port} --ignore-certificate-errors-spki-list=[A-Za-z0-9+/]{43}=$`),
  );
  expect(JSON.stringify(variables)).not.toContain(plane.token);
  expect(readFileSync(join(folder, 'trust.p12')).length).toBeGreaterThan(500);
  expect(statSync(join(folder, 'trust.p12')).mode & 0o777).toBe(0o600);
  await close();
});

test.skipIf(process.platform !== 'linux')('says why a relay could not be prepared', async () => {
  const opened = await openRelay(session('wrong'), {}, process.getuid?.() ?? null);
  expect(opened).toMatchObject({ ok: false, error: { reason: 'relay_unavailable' } });
  expect(opened.ok ? '' : opened.error.message).toContain('407');
});

test('quotes a path with a space for the JVM', () => {
  expect(javaToolOptions({ port: 1 }, '/home/a b/trust.p12', '')).toContain(
    " '-Djavax.net.ssl.trustStore=/home/a b/trust.p12' ",
  );
  expect(javaToolOptions({ port: 1 }, "/home/a'b/trust.p12", '')).toContain(
    ' "-Djavax.net.ssl.trustStore=/home/a\'b/trust.p12" ',
  );
});
