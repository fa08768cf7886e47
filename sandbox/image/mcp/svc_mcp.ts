import { Bridge } from './bridge.ts';
import { Endpoint } from './endpoint.ts';
import { LineReader } from './line_reader.ts';

/**
 * Composition root of `svc-mcp`: connects MCP clients in a container over stdin and stdout to the sidecar outside. It has no
 * dependencies, so that it runs with any Node from 20 on.
 */

const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** How long calls are still answered after the client closed our input. */
const LAST_ANSWERS_MS = 60_000;
const EXIT_REFUSED = 1;
const EXIT_USAGE = 2;

function fail(code: number, text: string): never {
  process.stderr.write(`svc-mcp: ${text}\n`);
  process.exit(code);
}

function endpointOf(env: NodeJS.ProcessEnv): Endpoint {
  const { SVC_URL: url = '', SVC_TOKEN: token = '' } = env;
  if (url === '' || token === '') {
    fail(EXIT_REFUSED, 'SVC_URL and SVC_TOKEN are not set. Run it in a session: svc launch -- COMMAND');
  }
  if (!URL.canParse(url) || new URL(url).protocol !== 'http:') fail(EXIT_REFUSED, 'SVC_URL is not an http URL.');
  if (!/^[!-~]+$/.test(token)) fail(EXIT_REFUSED, 'SVC_TOKEN is not a token.');
  return new Endpoint(new URL('/v1/mcp', url), token);
}

function warn(text: string): void {
  process.stderr.write(`svc-mcp: ${text}\n`);
}

function write(line: string): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(`${line}\n`, () => resolve());
  });
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

async function serve(bridge: Bridge): Promise<void> {
  const lines = new LineReader(MAX_LINE_BYTES);
  for await (const chunk of process.stdin) {
    if (chunk instanceof Uint8Array) for (const line of lines.push(chunk)) bridge.take(line);
  }
  const last = lines.rest();
  if (last !== '') bridge.take(last);
  await Promise.race([bridge.waitForAnswers(), pause(LAST_ANSWERS_MS)]);
}

async function main(): Promise<void> {
  const [option, ...more] = process.argv.slice(2);
  if (option === '--check' && more.length === 0) {
    process.stdout.write(`node=${process.version}\n`);
    return;
  }
  if (option !== undefined) fail(EXIT_USAGE, 'usage: svc-mcp, started by an MCP client; or svc-mcp --check');
  const bridge = new Bridge({ endpoint: endpointOf(process.env), write, warn, pause });
  const leave = (code: number): void => void bridge.close().finally(() => process.exit(code));
  process.on('SIGTERM', () => leave(0));
  process.on('SIGINT', () => leave(0));
  process.stdout.on('error', () => leave(EXIT_REFUSED));
  try {
    await serve(bridge);
    leave(0);
  } catch (error) {
    warn(error instanceof Error ? error.message : String(error));
    leave(EXIT_REFUSED);
  }
}

await main();
