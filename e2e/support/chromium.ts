import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import { BrowserPage } from './browser_page.ts';
import { DevTools } from './devtools.ts';
import { kill } from './process.ts';
import { available, shellEnvironment } from './program.ts';

/** Why there is no Chromium to drive; null when there is one. */
export function chromiumProblem(): string | null {
  return available('chromium --version') ? null : 'chromium is not here: apt-get install chromium';
}

export interface ChromiumOptions {
  /** The one certificate that is taken beside those of the system's roots. */
  readonly certificate: string;
  /** The names that lead to a port of loopback on 443; besides these and localhost nothing is resolved. */
  readonly names: Readonly<Record<string, number>>;
}

/** A Chromium with a profile of its own. */
export interface Chromium {
  /** A tab that shares no cookies with any other. */
  open(): Promise<BrowserPage>;
  stop(): Promise<void>;
}

const STOP_MS = 5_000;

export async function startChromium(options: ChromiumOptions): Promise<Chromium> {
  const profile = await mkdtemp(join(tmpdir(), 'svc-chromium-'));
  const child = spawn('chromium', flags(profile, options), {
    env: shellEnvironment(),
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  });
  child.stderr?.resume();
  const [, , , output, input] = child.stdio;
  if (!(output instanceof Writable) || !(input instanceof Readable)) throw new Error('chromium has no pipes');
  const devTools = new DevTools(input, output);
  return {
    open: () => BrowserPage.open(devTools),
    async stop() {
      await stop(child, devTools);
      await rm(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

function flags(profile: string, { certificate, names }: ChromiumOptions): string[] {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  const rules = Object.entries(names).map(([name, port]) => `MAP ${name}:443 127.0.0.1:${port}`);
  return [
    '--headless',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    // A root user's Chromium has to give up its sandbox.
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    `--user-data-dir=${profile}`,
    `--ignore-certificate-errors-spki-list=${createHash('sha256').update(key).digest('base64')}`,
    `--host-resolver-rules=${[...rules, 'MAP * ~NOTFOUND', 'EXCLUDE localhost'].join(', ')}`,
    '--remote-debugging-pipe',
  ];
}

async function stop(child: ChildProcess, devTools: DevTools): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return;
  const gone = once(child, 'exit');
  const { pid } = child;
  const timer = setTimeout(() => kill(-pid, 'SIGKILL'), STOP_MS);
  // It may be gone before it answers.
  await devTools.call(z.object({}), 'Browser.close').catch(() => undefined);
  await gone;
  clearTimeout(timer);
}
