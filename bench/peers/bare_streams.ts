import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { HTTP2_HOST, type Upstream } from '../load/nginx.ts';
import { startNodeProgram } from '../load/programs.ts';
import type { Proxy } from './proxy.ts';

export const bareStreamsSettings = z.object({
  host: z.string(),
  port: z.number(),
  ca: z.string(),
  key: z.string(),
  cert: z.string(),
  bearer: z.string(),
});

/** What HTTP/2 costs on Node: a proxy that decides, searches and records nothing. */
export async function startBareStreams(_directory: string, upstream: Upstream): Promise<Proxy> {
  const settings: z.infer<typeof bareStreamsSettings> = {
    host: HTTP2_HOST,
    port: upstream.http2Port,
    ca: readFileSync(upstream.caFile, 'utf8'),
    key: readFileSync(upstream.keyFile, 'utf8'),
    cert: readFileSync(upstream.certFile, 'utf8'),
    bearer: upstream.bearer,
  };
  const running = await startNodeProgram(new URL('bare_streams_program.ts', import.meta.url), settings);
  return {
    ...running,
    name: 'node:http2',
    version: process.version,
    kind: 'front',
    authority: (host) => `${host}:443`,
    user: '',
    password: '',
    caFile: upstream.caFile,
    companion: null,
  };
}
