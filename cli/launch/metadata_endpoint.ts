import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { GOOGLE_METADATA_PATH } from '../../shared/net/sdk_endpoints.ts';
import { listen } from '../../machine/connection/listen.ts';

/** A listener for Google's libraries in one session. */
export interface MetadataEndpoint {
  /** `host:port`, for `GCE_METADATA_HOST`. */
  readonly host: string;
  readonly close: () => Promise<void>;
}

interface MetadataSession {
  /** The sidecar's own API. */
  readonly origin: string;
  readonly token: string;
}

const LOOPBACK = '127.0.0.1';
const ASK_MS = 5_000;
const REQUEST_MS = 5_000;
const MOST_CONNECTIONS = 64;
/** What the metadata server's rules are about; nothing else of a request goes on. */
const CARRIED = ['metadata-flavor', 'x-forwarded-for'] as const;
const REPLIED = ['content-type', 'metadata-flavor'] as const;

/**
 * Opens a listener that is one session's alone, because Google's libraries send no token: what it is asked goes to the sidecar
 * with the session's token. It is part of the command's own launcher, so it lives as long as the command, also while the sidecar
 * restarts. Other users of the machine can ask it too; no reply has a credential (decision 0117).
 */
export async function openMetadataEndpoint(session: MetadataSession): Promise<MetadataEndpoint> {
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
    response.shouldKeepAlive = false;
    void answer(request, response, session);
  });
  server.maxConnections = MOST_CONNECTIONS;
  const port = await listen(server, 0, LOOPBACK);
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };
  return { host: `${LOOPBACK}:${port}`, close };
}

async function answer(
  { method = '', url = '', headers }: IncomingMessage,
  response: ServerResponse,
  { origin, token }: MetadataSession,
): Promise<void> {
  // A browser that an attacker's name led here sends that name.
  if (!/^(?:127\.0\.0\.1|localhost)(?::\d{1,5})?$/i.test(headers.host ?? '')) return refuse(response, 421);
  if (method !== 'GET') return refuse(response, 405);
  const path = URL.canParse(url, origin) ? new URL(url, origin) : null;
  if (path === null || path.origin !== origin || !isMetadata(path.pathname)) return refuse(response, 404);
  const asked = Object.fromEntries(CARRIED.flatMap((name) => pairOf(name, headers[name])));
  try {
    const reply = await fetch(path, {
      headers: { ...asked, authorization: `Bearer ${token}` },
      redirect: 'error',
      signal: AbortSignal.timeout(ASK_MS),
    });
    const body = await reply.text();
    response.writeHead(
      reply.status,
      Object.fromEntries(REPLIED.flatMap((name) => pairOf(name, reply.headers.get(name) ?? undefined))),
    );
    response.end(body);
  } catch {
    // The sidecar restarts, or is gone; libraries ask again.
    refuse(response, 503);
  }
}

function isMetadata(path: string): boolean {
  return path === '/' || path.startsWith(`${GOOGLE_METADATA_PATH}/`);
}

function pairOf(name: string, value: string | readonly string[] | undefined): [string, string][] {
  return value === undefined ? [] : [[name, String(value)]];
}

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-type': 'text/plain' });
  response.end();
}
