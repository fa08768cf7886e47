import { z } from 'zod';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { fetchAs } from './fetch_as.ts';
import type { Svc } from './svc.ts';

const reads = z.object({
  get: z.object({ responses: z.object({ 200: z.object({ content: z.object({ 'application/json': z.unknown() }) }) }) }),
});
const described = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });
const listed = z.object({ items: z.array(z.object({ id: z.string() })) });

/** What the sidecar's local API has to read for the host. */
const LOCAL_READS = ['/v1/health', '/v1/connector-operations', '/v1/mcp/gateway', '/v1/mcp/isolation'];
/** A registry is asked for these. */
const ASKS_OUTSIDE = /\/marketplace|\/mcp-servers\/install/;
/** Of every list, as many things are read: an audit log has many events of one kind. */
const MOST_OF_A_LIST = 60;
/** The same for the pages of the console. */
const MOST_PAGES = 150;

/** An answer, and what it answers. */
export interface SeenAnswer {
  readonly to: string;
  readonly text: string;
}

/** Reads all that the local owner can read of svc over HTTP: its API, the pages of its console, and the sidecar's local API. */
export async function readEveryAnswer(svc: Svc): Promise<readonly SeenAnswer[]> {
  const local = LOCAL_READS.map(async (path) => answerTo(path, (await svc.local('GET', path)).body));
  return [...(await readApi(svc)), ...(await readConsole(svc)), ...(await Promise.all(local))];
}

const answerTo = (path: string, body: unknown): SeenAnswer => ({ to: `GET ${path}`, text: JSON.stringify(body) });

/** Every GET that the control plane describes as JSON, for each thing whose id a list names. */
async function readApi(svc: Svc): Promise<readonly SeenAnswer[]> {
  const { paths } = described.parse((await svc.api('GET', '/openapi.json')).body);
  const readable = Object.entries(paths)
    .filter(([path, methods]) => reads.safeParse(methods).success && !ASKS_OUTSIDE.test(path))
    .map(([path]) => path);
  const answers: SeenAnswer[] = [];
  for (const path of readable.toSorted()) {
    for (const target of await targetsOf(svc, path)) {
      answers.push(answerTo(target, (await svc.api('GET', target)).body));
    }
  }
  return answers;
}

/** The path itself, or one for each thing of the list before its only parameter. */
async function targetsOf(svc: Svc, path: string): Promise<readonly string[]> {
  const [list = '', ...more] = path.split(/\/\{\w+\}/);
  if (more.length === 0) return [path];
  const { data } = listed.safeParse((await svc.api('GET', list)).body);
  const [rest = ''] = more;
  return (data?.items ?? []).slice(0, MOST_OF_A_LIST).map(({ id }) => `${list}/${encodeURIComponent(id)}${rest}`);
}

/** The pages of the console that links lead to, from the first one on. */
async function readConsole(svc: Svc): Promise<readonly SeenAnswer[]> {
  const { host, pathname } = new URL(signInLinkReply.parse((await svc.api('POST', '/v1/sign-in-links')).body).url);
  const read = (path: string, headers = {}) => fetchAs(host, `${svc.runFile.control_url}${path}`, { headers });
  const cookie = (await read(pathname)).headers.get('set-cookie')?.split(';')[0] ?? '';
  const answers: SeenAnswer[] = [];
  const [seen, waiting] = [new Set(['/']), ['/']];
  for (let path = waiting.shift(); path !== undefined && answers.length < MOST_PAGES; path = waiting.shift()) {
    const text = await (await read(path, { cookie })).text();
    answers.push({ to: `page ${path}`, text });
    for (const next of linksIn(text).filter((link) => !seen.has(link))) {
      seen.add(next);
      waiting.push(next);
    }
  }
  return answers;
}

function linksIn(page: string): string[] {
  const links = [...page.matchAll(/<a\b[^>]*\bhref="(\/[^"#]*)/g)].map(([, link = '']) =>
    link.replaceAll('&amp;', '&'),
  );
  return links.filter((link) => !link.startsWith('//') && !ASKS_OUTSIDE.test(link));
}
