/** A program: an HTTPS upstream that sends server-sent events until its client leaves. Settings: see `start_events_upstream.ts`. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { announce, readSettings } from './programs.ts';
import { eventsUpstreamSettings } from './start_events_upstream.ts';

const EVENT_EVERY_MS = 50;
const EVENT = `data: {"type":"delta","text":"${'some words of an answer '.repeat(4)}"}\n\n`;

async function main(): Promise<void> {
  const { certFile, keyFile } = await readSettings(eventsUpstreamSettings);
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const timer = setInterval(() => response.write(EVENT), EVENT_EVERY_MS);
    response.on('close', () => clearInterval(timer));
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (address !== null && typeof address === 'object') announce(address.port);
  });
  process.on('SIGTERM', () => process.exit(0));
}

await main();
