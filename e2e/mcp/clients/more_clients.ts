import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { z } from 'zod';
import { chatEvents } from '../../agents/replies.ts';
import { type ModelAnswer, offeredTools, sendEvents } from '../../agents/services.ts';
import { cachedInstall } from '../../support/cached_install.ts';
import { listen } from '../../support/tls_upstream.ts';
import type { DrivenClient } from './driven_clients.ts';

/** A server of a client's configuration. */
export const writtenServer = z.object({ command: z.string(), args: z.array(z.string()) });

/** An agent without a profile in the catalog, whose model is an address of this machine. */
export interface PlainClient extends Pick<DrivenClient, 'noticesNew' | 'keepsRemoved' | 'differs'> {
  readonly title: string;
  readonly npm: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Its name in `svc mcp export`; null if the gateway is added by hand. */
  readonly client: string | null;
  /** Its own configuration: the path in the home, and the text. */
  readonly configured: readonly [
    path: string,
    text: (modelUrl: string, gateway: z.output<typeof writtenServer>) => string,
  ];
}

const PROMPT = 'use the notes';

export const PLAIN: readonly PlainClient[] = [
  {
    title: 'Kimi Code',
    npm: '@moonshot-ai/kimi-code',
    program: 'kimi',
    args: ['-p', PROMPT],
    env: { KIMI_DISABLE_TELEMETRY: '1' },
    client: 'kimi-code',
    configured: [
      '.kimi-code/config.toml',
      (modelUrl) => `default_model = "m"
[providers.p]
type = "openai"
base_url = "${modelUrl}"
api_key = "none"
[models.m]
provider = "p"
model = "m"
max_context_size = 100000
[mcp]
startup_timeout_ms = 240000
`,
    ],
    noticesNew: false,
    keepsRemoved: true,
    differs:
      'Writes `__` in the name of a tool as `_`. Offers the tools of its start until it is started again; a call of one that was denied is refused.',
  },
  {
    title: 'Continue CLI',
    npm: '@continuedev/cli',
    program: 'cn',
    args: ['--auto', '-p', PROMPT],
    env: { CONTINUE_CLI_ENABLE_TELEMETRY: '0', CONTINUE_METRICS_ENABLED: '0' },
    client: null,
    configured: [
      '.continue/config.yaml',
      (modelUrl, { command, args }) =>
        JSON.stringify({
          name: 'local',
          version: '1.0.0',
          schema: 'v1',
          models: [
            {
              name: 'm',
              provider: 'openai',
              model: 'm',
              apiKey: 'none',
              apiBase: modelUrl,
              capabilities: ['tool_use'],
            },
          ],
          mcpServers: [{ name: 'svc', command, args }],
        }),
    ],
    noticesNew: false,
    keepsRemoved: true,
    differs:
      'Its configuration is YAML that `svc mcp export` does not write. Offers the tools of its start until it is started again; a call of one that was denied is refused.',
  },
];

/** A client without a model: a person or a script calls the tools. */
export const MCPORTER = { title: 'MCPorter', npm: 'mcporter', program: 'mcporter', client: 'mcporter' } as const;

const packageFile = z.object({ dependencies: z.record(z.string(), z.string()) });

/** The version of a client that the lock file pins. */
export function versionOf(npm: string): string {
  const text = readFileSync(join(import.meta.dirname, 'package.json'), 'utf8');
  return packageFile.parse(JSON.parse(text)).dependencies[npm] ?? '';
}

/** The folder with the programs of these clients; null if they are not installed. */
export async function installMoreClients(): Promise<string | null> {
  const folder = await cachedInstall({ name: 'mcp-clients', from: import.meta.dirname });
  return folder === null ? null : join(folder, 'node_modules', '.bin');
}

/** A model at an address of this machine, with the Chat Completions API. */
export async function startChatModel(answer: Exclude<ModelAnswer, string>) {
  const reply = async (body: string, response: ServerResponse): Promise<void> =>
    sendEvents(response, chatEvents(await answer({ tools: offeredTools(body), body })));
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      if (request.url?.endsWith('/chat/completions') === true) void reply(body, response);
      else response.writeHead(404).end();
    });
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/v1`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** These programs look for updates and send statistics: they reach nothing but this machine. */
export const ONLY_HERE = {
  HTTP_PROXY: 'http://127.0.0.1:9',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  NO_PROXY: '127.0.0.1,localhost',
  NODE_USE_ENV_PROXY: '1',
} as const;
