import type { Readable, Writable } from 'node:stream';
import type { JSONRPCMessage } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import type { Caller } from '../../machine/mcp_caller.ts';
import type { Gateway } from '../gateway.ts';
import { gatewayServer, type ServedClient } from '../gateway_server.ts';
import { listUris, subscribeAll } from './listen_uris.ts';

interface StdioFrontOptions {
  readonly gateway: Gateway;
  readonly caller: Caller;
  readonly stdin: Readable;
  readonly stdout: Writable;
}

interface StdioFront {
  /** Resolves when the client closes the input. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

/** Serves one client over stdin and stdout, in the generation that the client starts with. */
export function serveStdioFront({ gateway, caller, stdin, stdout }: StdioFrontOptions): StdioFront {
  const ended = Promise.withResolvers<void>();
  const gone = new AbortController();
  const transport = new StdioServerTransport(stdin, stdout, { maxBufferSize: gateway.limits.maxMessageBytes });
  let served: ServedClient | null = null;
  const handle = serveStdio(
    () => {
      served = gatewayServer(gateway, caller, true);
      return served.server;
    },
    { transport },
  );
  const { onmessage, onclose } = transport;
  Object.assign(transport, {
    onmessage(message: JSONRPCMessage) {
      onmessage?.(message);
      const key = served?.client.key ?? null;
      if (key !== null) subscribeAll(gateway, caller, key, listUris(message), gone.signal);
    },
    onclose() {
      gone.abort();
      onclose?.();
      ended.resolve();
    },
  });
  return {
    ended: ended.promise,
    async close() {
      gone.abort();
      await handle.close();
      ended.resolve();
    },
  };
}
