import { createHash, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

/** Why there is no Chromium to drive; null when there is one. */
export function chromiumProblem(): string | null {
  return chromiumPath() === null ? 'chromium is not here: apt-get install chromium' : null;
}

/**
 * The full browser, without a window: the build that has none takes half the processor's time, but gives up requests when an
 * interface of the machine changes, as those of containers do.
 */
function chromiumPath(): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.map((folder) => join(folder, 'chromium')).find((path) => existsSync(path)) ?? null;
}

export interface ChromiumOptions {
  /** The one certificate that is taken beside those of the system's roots. */
  readonly certificate?: string;
  /** The names that lead to a port of loopback on 443; besides these and names of localhost nothing is resolved. */
  readonly names?: Readonly<Record<string, number>>;
}

/** The system's Chromium with a profile of its own, in which nothing outside of this machine can be reached. */
export async function startChromium({ certificate, names = {} }: ChromiumOptions = {}): Promise<Browser> {
  const executablePath = chromiumPath();
  if (executablePath === null) throw new Error('chromium is not here');
  const rules = Object.entries(names).map(([name, port]) => `MAP ${name}:443 127.0.0.1:${port}`);
  return chromium.launch({
    executablePath,
    // A root user's Chromium has to give up its sandbox.
    chromiumSandbox: process.getuid?.() !== 0,
    args: [
      `--host-resolver-rules=${[...rules, 'MAP * ~NOTFOUND', 'EXCLUDE localhost', 'EXCLUDE *.localhost', 'EXCLUDE 127.0.0.1'].join(', ')}`,
      ...(certificate === undefined ? [] : [`--ignore-certificate-errors-spki-list=${keyHash(certificate)}`]),
    ],
  });
}

function keyHash(certificate: string): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(key).digest('base64');
}
