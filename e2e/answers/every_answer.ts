import { OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import { pageTable } from '../../worker/routes/console/page_table.ts';
import type { AppEnv } from '../../worker/routes/http/app_env.ts';
import type { Svc } from '../support/svc.ts';
import type { Asker } from './asker.ts';

const described = z.object({
  paths: z.record(
    z.string(),
    z.record(z.string(), z.looseObject({ security: z.array(z.record(z.string(), z.unknown())) })),
  ),
});
const listItem = z.record(z.string(), z.unknown());
const listed = z
  .object({
    items: z.array(listItem).optional(),
    heads: z.array(listItem).optional(),
    Resources: z.array(listItem).optional(),
    next_cursor: z.string().nullish(),
  })
  .transform(({ items, heads, Resources, next_cursor }) => ({
    items: items ?? heads ?? Resources ?? [],
    next_cursor: next_cursor ?? null,
  }));

/** What the sidecar's local API has to read for the host. */
const LOCAL_READS = ['/v1/health', '/v1/connector-operations', '/v1/mcp/gateway', '/v1/mcp/isolation'];
const STREAM = '/v1/audit-events/stream';
/** The list that names what a path is about, where that is not the part before the parameter. */
const LISTS: Readonly<Record<string, string>> = {
  '/v1/audit-events/chains': '/v1/audit-events/heads',
  '/v1/marketplace/readmes': '/v1/marketplace/servers',
};
/** What an item of a list is named by in a path, the first that it has. */
const NAMES = ['id', 'path', 'writer', 'registry_id'] as const;
/** Of things of one kind, as many are read: further ones have the same answers. Every page of a list is read. */
const MOST_OF_A_KIND = 3;

const FURTHER_PAGE = /[?&](?:cursor|page)=/;

/** An answer, and what it answers. */
export interface SeenAnswer {
  /** `GET /v1/me`, `page /secrets`. */
  readonly to: string;
  /** As the description or the table of pages has it. */
  readonly route: string;
  readonly status: number;
  readonly text: string;
}

/**
 * Reads all that somebody's program, browser and sidecar can read of a control plane over HTTP: its API with each page of its lists,
 * the stream of audit events, and the pages of its console. `more` are paths that no list and no link leads to.
 */
export async function readEveryAnswer(asker: Asker, more: readonly string[] = []): Promise<readonly SeenAnswer[]> {
  return [...(await readApi(asker, more)), await readStream(asker), ...(await readConsole(asker, more))];
}

/** The operations of the API that read: by the description, `METHOD PATH`. */
export async function describedReads({ byKey }: Asker): Promise<readonly string[]> {
  const { paths } = described.parse(await (await byKey('/openapi.json')).json());
  return Object.entries(paths)
    .filter(([, methods]) => methods['get'] !== undefined)
    .map(([path]) => path);
}

/** The pages of the console, or the routes that receive its forms. */
export function consoleRoutes(method: 'get' | 'post'): readonly string[] {
  return pageTable(new OpenAPIHono<AppEnv>())
    .filter(([each]) => each === method)
    .map(([, path]) => path);
}

async function readApi(asker: Asker, more: readonly string[]): Promise<readonly SeenAnswer[]> {
  const answers: SeenAnswer[] = [];
  for (const route of await describedReads(asker)) {
    if (route === STREAM) continue;
    const isRoute = patternOf(route);
    const targets = [...(await targetsOf(asker, route)), ...more.filter((path) => isRoute.test(path.split('?')[0]!))];
    for (const target of targets) answers.push(...(await readPages(asker, route, target)));
  }
  return answers;
}

/** The path itself, or one for each thing of the list before its only parameter. */
async function targetsOf(asker: Asker, route: string): Promise<readonly string[]> {
  const [before = '', ...after] = route.split(/\/\{\w+\}/);
  if (after.length === 0) return [route];
  if (after.length > 1 || !/^\/(?:v1|scim)\//.test(before)) return [];
  const pages = await readPages(asker, route, LISTS[before] ?? before);
  const items = pages.flatMap(({ status, text }) => (status === 200 ? itemsOf(text).items : []));
  return items
    .flatMap((item) => NAMES.map((name) => item[name]).find((name) => typeof name === 'string') ?? [])
    .slice(0, MOST_OF_A_KIND)
    .map((name) => `${before}/${encodeURIComponent(name)}${after[0]}`);
}

const itemsOf = (text: string) => listed.safeParse(JSON.parse(text)).data ?? { items: [], next_cursor: null };

/** What is answered, and if it is a list, its further pages. */
export async function readPages(asker: Asker, route: string, path: string): Promise<readonly SeenAnswer[]> {
  const answers: SeenAnswer[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const next = `${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`;
    const target: string = cursor === '' ? path : next;
    const reply = path.startsWith('/v1/sidecar/') ? await asker.sidecar.call('GET', target) : await asker.byKey(target);
    const text = await reply.text();
    answers.push({ to: `GET ${target}`, route, status: reply.status, text });
    const isJson = reply.status === 200 && reply.headers.get('content-type')?.startsWith('application/json') === true;
    cursor = isJson && text.startsWith('{') ? itemsOf(text).next_cursor : null;
  }
  return answers;
}

/** The stream of audit events, to the newest event that there is when it begins. */
async function readStream({ byKey }: Asker): Promise<SeenAnswer> {
  const { items } = itemsOf(await (await byKey('/v1/audit-events?limit=1')).text());
  const path = `${STREAM}?backlog=1000`;
  const reply = await byKey(path);
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  const newest = String(items[0]?.['id']);
  let text = '';
  for (let done = false; !done && !text.includes(newest);) {
    const part = await reader.read();
    done = part.done;
    text += part.value ?? '';
  }
  await reader.cancel();
  return { to: `GET ${path}`, route: STREAM, status: reply.status, text };
}

/** Reads the sidecar's local API. */
export function readLocal(svc: Pick<Svc, 'local'>): Promise<readonly SeenAnswer[]> {
  return Promise.all(
    LOCAL_READS.map(async (path) => {
      const { status, body } = await svc.local('GET', path);
      return { to: `local GET ${path}`, route: `local ${path}`, status, text: JSON.stringify(body) };
    }),
  );
}

/** The pages of the console that links lead to, and those that need no more than their address, from the first one on. */
async function readConsole({ inBrowser }: Asker, more: readonly string[]): Promise<readonly SeenAnswer[]> {
  const routes = consoleRoutes('get');
  const answers: SeenAnswer[] = [];
  const waiting = ['/', ...more.filter((path) => !path.startsWith('/v1/'))];
  waiting.push(...routes.filter((route) => !route.includes('{')));
  const seen = new Set(waiting);
  const read = new Map<string, number>();
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    const route = routeOf(path, routes);
    const count = (read.get(route) ?? 0) + 1;
    read.set(route, count);
    if (count > MOST_OF_A_KIND && !FURTHER_PAGE.test(path)) continue;
    const reply = await inBrowser(path);
    const text = await reply.text();
    answers.push({ to: `page ${path}`, route, status: reply.status, text });
    for (const next of linksIn(text).filter((link) => !seen.has(link))) {
      seen.add(next);
      waiting.push(next);
    }
  }
  return answers;
}

/** The route of a path: the first that is the same, else the first that fits. */
export function routeOf(path: string, routes: readonly string[]): string {
  const [bare = ''] = path.split('?');
  return routes.find((route) => route === bare) ?? routes.find((route) => patternOf(route).test(bare)) ?? bare;
}

function patternOf(route: string): RegExp {
  return new RegExp(`^${route.replaceAll(/\{\w+\+\}/g, '.+').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}

function linksIn(page: string): string[] {
  const links = [...page.matchAll(/\b(?:href|src)="(\/[^"#]*)/g)].map(([, link = '']) => link.replaceAll('&amp;', '&'));
  return links.filter((link) => !link.startsWith('//'));
}
