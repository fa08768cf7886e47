import { spawnSync } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';

/** Why Chromium cannot be driven; null if it can. */
export function chromiumProblem(): string | null {
  return chromiumPath() === null ? 'chromium is not here: apt-get install chromium' : null;
}

/** The headless build shows the same pages in half the CPU time. */
function chromiumPath(): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const paths = ['chromium-headless-shell', 'chromium'].flatMap((name) => folders.map((folder) => join(folder, name)));
  return paths.find((path) => existsSync(path)) ?? null;
}

/** Flags with which Chromium keeps its connections when a network interface changes, as those of containers do. */
export function withoutNetlink(path: string): { readonly program: string; readonly env: Record<string, string> } {
  const program = fileURLToPath(new URL('chromium_without_netlink.py', import.meta.url));
  const works = spawnSync(program, ['-c', ''], { env: { CHROMIUM: '/bin/sh' }, stdio: 'ignore' }).status === 0;
  return works ? { program, env: { CHROMIUM: path } } : { program: path, env: {} };
}

interface ChromiumOptions {
  /** The only certificate that is accepted besides those of the system's roots. */
  readonly certificate?: string;
  /** The names whose port 443 leads to a loopback port; except for these and names of localhost, nothing is resolved. */
  readonly names?: Readonly<Record<string, number>>;
}

/** The system's Chromium with its own profile, which can reach nothing outside this machine. */
export async function startChromium({ certificate, names = {} }: ChromiumOptions = {}): Promise<Browser> {
  const executablePath = chromiumPath();
  if (executablePath === null) throw new Error('chromium is not here');
  const rules = Object.entries(names).map(([name, port]) => `MAP ${name}:443 127.0.0.1:${port}`);
  const { program, env } = withoutNetlink(executablePath);
  return chromium.launch({
    executablePath: program,
    env: { ...process.env, ...env },
    // Chromium as root has to run without its sandbox.
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
