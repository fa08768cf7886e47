import { z } from 'zod';
import { run } from '../../e2e/support/program.ts';
import type { Tool } from './programs.ts';

export const CURL: Tool = { name: 'curl', probe: 'command -v curl', install: 'apt-get install curl' };

interface Transfer {
  readonly url: string;
  readonly proxyUrl: string;
  readonly proxyUser: string;
  readonly caFile: string;
  /** A file to upload; without it the URL is downloaded. */
  readonly upload?: string;
}

const written = z.object({ status: z.coerce.number(), down: z.number(), up: z.number(), seconds: z.number() });
const FORMAT = '{"status":"%{http_code}","down":%{size_download},"up":%{size_upload},"seconds":%{time_total}}';

function configOf(transfer: Transfer): string {
  const lines: Record<string, string> = {
    url: transfer.url,
    proxy: transfer.proxyUrl,
    'proxy-user': transfer.proxyUser,
    cacert: transfer.caFile,
    'write-out': FORMAT.replaceAll('"', '\\"'),
    output: '/dev/null',
    header: 'Expect:',
  };
  if (transfer.upload !== undefined) lines['upload-file'] = transfer.upload;
  return Object.entries(lines)
    .map(([name, value]) => `${name} = "${value}"\n`)
    .join('');
}

interface Moved {
  readonly bytes: number;
  readonly seconds: number;
  /** False if the proxy closed the connection before the end. */
  readonly complete: boolean;
}

/** Moves one file through the proxy with curl. */
export async function runTransfer(transfer: Transfer): Promise<Moved> {
  const flags = ['--silent', '--show-error', '--http1.1', '--max-time', '60', '--noproxy', '', '--config', '-'];
  const done = await run('curl', flags, { input: configOf(transfer) });
  if (done.stdout === '') throw new Error(`curl: exit ${done.code}: ${done.stderr}`);
  const { status, down, up, seconds } = written.parse(JSON.parse(done.stdout));
  if (status !== 0 && (status < 200 || status > 299)) throw new Error(`${transfer.url} answered ${status}`);
  return { bytes: transfer.upload === undefined ? down : up, seconds, complete: done.code === 0 };
}
