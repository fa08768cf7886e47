import { join } from 'node:path';
import { expect } from 'vitest';
import { withoutNetlink } from '../support/chromium.ts';
import type { MatrixClient } from './client.ts';
import { expectItemsCalls } from './http_clients.ts';
import { HOSTS, ITEMS, ITEMS_OVER_HTTP2, PROGRAMS, type MatrixWorld } from './world.ts';

const JAVA = { probe: 'command -v javac && java --version', packages: 'default-jdk-headless' };
const CHROMIUM = { probe: 'chromium --version', packages: 'chromium' };

function java(client: string, url = ITEMS): readonly string[] {
  return ['java', join(PROGRAMS, 'Items.java'), client, url];
}

function javaClient(
  name: string,
  client: string,
  service: 'items' | 'itemsOverHttp2' = 'items',
  url = ITEMS,
): MatrixClient {
  const use = async (world: MatrixWorld): Promise<void> =>
    expectItemsCalls(world, await world.runWithRelay(java(client, url)), service);
  return {
    name,
    ...JAVA,
    sets: ['JAVA_TOOL_OPTIONS'],
    relay: true,
    tried: 'GET, POST',
    works: true,
    service,
    use,
  };
}

/** Chromium as root has to run without its sandbox; the proxy has no part in that. */
function chromium(profile: string, flags: string): string {
  const sandbox = process.getuid?.() === 0 ? '--no-sandbox' : '';
  const quiet = '--headless --disable-gpu --no-first-run --disable-background-networking --disable-component-update';
  const patience = '--virtual-time-budget=8000 --dump-dom';
  const { program, env } = withoutNetlink('chromium');
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return `${variables.join(' ')} exec '${program}' ${quiet} ${sandbox} --user-data-dir='${profile}' ${flags} ${patience} https://${HOSTS.items}/page`;
}

async function useChromium(world: MatrixWorld): Promise<void> {
  const command = chromium(world.folder('chromium'), '$SVC_CHROMIUM_FLAGS');
  const page = await world.runWithRelay(['sh', '-c', command]);
  expect(page).toContain('<p id="said">made 201</p>');
  const calls = world.services.items.requests.map(({ method, path }) => `${method} ${path}`);
  expect(calls.filter((call) => !call.endsWith('/favicon.ico'))).toEqual(['GET /page', 'POST /items']);
}

/** Runs a client without the relay, and expects that it fails and sends nothing. */
function withoutRelay(
  row: Pick<MatrixClient, 'name' | 'probe' | 'packages' | 'note'>,
  command: (world: MatrixWorld) => readonly string[],
): MatrixClient {
  const use = async (world: MatrixWorld): Promise<void> => {
    const done = await world.tryRun(command(world));
    expect(done.stdout).not.toContain('made');
    expect(world.services.items.requests).toEqual([]);
  };
  return { ...row, sets: [], tried: 'the same', works: false, service: 'items', use };
}

export const RELAY_CLIENTS: readonly MatrixClient[] = [
  javaClient('Java HttpClient', 'HttpClient'),
  javaClient('Java HttpClient, HTTP/2', 'HttpClient', 'itemsOverHttp2', ITEMS_OVER_HTTP2),
  javaClient('Java HttpsURLConnection', 'HttpsURLConnection'),
  withoutRelay(
    {
      name: 'Java, without `--relay`',
      ...JAVA,
      note: 'a JVM reads no proxy variable, and no property of it holds credentials for a proxy',
    },
    () => java('HttpClient'),
  ),
  {
    name: 'Chromium, headless',
    ...CHROMIUM,
    sets: ['SVC_CHROMIUM_FLAGS'],
    relay: true,
    tried: 'a page, and a POST by its script',
    note: 'with `--user-data-dir="$(mktemp -d)" $SVC_CHROMIUM_FLAGS` on its command line',
    works: true,
    service: 'items',
    use: useChromium,
  },
  withoutRelay(
    {
      name: 'Chromium, without `--relay`',
      ...CHROMIUM,
      note: 'it reads the proxy variables, but drops the credentials in them',
    },
    (world) => ['sh', '-c', chromium(world.folder('chromium'), '')],
  ),
];
