import { afterAll, beforeAll, expect, it } from 'vitest';
import { CREDENTIALS_TYP, credentialsPayload } from '../../shared/wire/channel.ts';
import { foundIn, searchFiles } from '../support/planted_secret.ts';
import { answeredWith, holding, statusesOf } from './answer_sets.ts';
import { localAsker } from './asker.ts';
import { FORMS_ELSEWHERE, isElsewhere, PAGES_ELSEWHERE, READ_ELSEWHERE } from './elsewhere.ts';
import {
  consoleRoutes,
  describedReads,
  readEveryAnswer,
  readLocal,
  readPages,
  type SeenAnswer,
} from './every_answer.ts';
import { callWithPlanted, submitWithPlanted } from './every_refusal.ts';
import { type PlantedWorld, startPlantedWorld } from './planted_world.ts';
import { DELETED, LAST } from './planter.ts';

// Everything that svc answers, searched for the values that it stores, mints and borrows, and for those that were sent to it in the
// place of a secret. That a search finds nothing says something only if it would find what is there: so there are texts that svc
// shows beside the values that it does not, and the statuses are counted.

/** What the CLI prints about all of it. */
const COMMANDS = [
  ['secret', 'list'],
  ['secret', 'source', 'show', 'ci/github'],
  ['binding', 'list', '--json'],
  ['mcp', 'list', '--json'],
  ['connector', 'list'],
  ['explain', 'GET', 'https://stored.example.test/', '--json'],
  ['audit', 'list', '--json'],
];

let planted: PlantedWorld;
let reads: readonly SeenAnswer[];
let calls: readonly SeenAnswer[];
let forms: readonly SeenAnswer[];
let printed: readonly SeenAnswer[];

beforeAll(async () => {
  planted = await startPlantedWorld();
  const { asker, planter, world } = planted;
  reads = [...(await readEveryAnswer(asker, planter.more)), ...(await readLocal(world.svc))];
  printed = await Promise.all(COMMANDS.map((args) => print(args)));
  calls = await callWithPlanted(asker, planter.stored);
  forms = await submitWithPlanted(asker, reads, planter.stored);
});
afterAll(() => planted?.stop());

async function print(args: readonly string[]): Promise<SeenAnswer> {
  const { code, stdout, stderr } = await planted.world.svc.cli(args);
  return { to: `svc ${args.join(' ')}`, route: 'cli', status: code ?? -1, text: stdout + stderr };
}

it('reads each route of the API and each page of the console, with content', async () => {
  const seen = answeredWith(reads, 200);
  const described = await describedReads(planted.asker);
  const unread = described.filter((route) => !seen.has(route) && !isElsewhere(route, READ_ELSEWHERE));
  const unseen = consoleRoutes('get').filter((route) => !seen.has(route) && !isElsewhere(route, PAGES_ELSEWHERE));
  expect({ unread, unseen }).toEqual({ unread: [], unseen: [] });
  expect(reads.filter(({ status }) => status >= 500)).toEqual([]);
  expect(printed.filter(({ status }) => status !== 0)).toEqual([]);
});

it('gets refusals of every kind', () => {
  expect(statusesOf(calls)).toEqual(expect.arrayContaining([200, 201, 400, 401, 403, 404, 409, 410, 415, 421, 502]));
  expect(statusesOf(forms)).toEqual(expect.arrayContaining([303, 400, 404, 502]));
  const unsent = consoleRoutes('post').filter((route) => !forms.some((form) => form.route === route));
  expect(unsent.toSorted()).toEqual(FORMS_ELSEWHERE.toSorted());
  expect(forms.length).toBeGreaterThan(50);
  const strangers = calls.filter(({ to, route }) => route.startsWith('/v1/sidecar/') && !to.endsWith('by its caller'));
  expect(strangers.length).toBeGreaterThan(20);
  expect(strangers.filter(({ status }) => status !== 401)).toEqual([]);
});

it('finds a text that svc shows, wherever it is shown', () => {
  const found = holding([...reads, ...printed, ...forms], planted.planter.shown);
  for (const to of [
    /^GET \/v1\/host-bindings$/,
    /^GET \/v1\/host-bindings\/bnd_/,
    /^GET \/v1\/mcp-servers\/mcp_\w+\/tools$/,
    /^GET \/v1\/sidecar\/snapshot$/,
    /^page \/bindings\/bnd_/,
    /^page \/mcp-servers\/mcp_\w+\/tools$/,
    /^svc binding list/,
  ]) {
    expect([to, found.some((each) => to.test(each))]).toEqual([to, true]);
  }
  expect(searchFiles(planted.world.svc.home, planted.planter.shown).holding).toContainEqual(
    expect.stringMatching(/control\.db/),
  );
});

it('finds what is on a further page of a list, in a stream, in an export and in a refusal', () => {
  const found = holding(reads, LAST);
  for (const to of [
    /^GET \/v1\/secrets\?limit=20&cursor=/,
    /^GET \/v1\/audit-events\/stream/,
    /^page \/secrets\?page=2$/,
    /^page \/audit\/export\?/,
  ]) {
    expect([to, found.some((each) => to.test(each))]).toEqual([to, true]);
  }
  const refused = forms.filter(({ status }) => status === 400);
  expect(holding(refused, DELETED)).toContain('form /secrets/delete');
});

it('finds no value that svc stores, mints or borrows, and none that was sent in the place of a secret', () => {
  expect(planted.secrets.length).toBeGreaterThan(20);
  expect(new Set(holding([...reads, ...printed, ...calls, ...forms], ...planted.secrets))).toEqual(new Set());
});

it('gives a value to a sidecar only, sealed for it', async () => {
  const { sidecar } = await localAsker(planted.world.svc);
  const body = { request_id: crypto.randomUUID(), credentials: [{ owner: 'personal', path: LAST }] };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  const text = await reply.text();
  expect([reply.status, foundIn(text, planted.planter.stored)]).toEqual([200, []]);
  const payload = await sidecar.verify(text, CREDENTIALS_TYP, credentialsPayload);
  expect(await sidecar.unseal(payload.credentials[0]?.sealed ?? '')).toEqual({ value: planted.planter.stored });
});

it('leaves none in its files, its logs, its audit log and what it prints', async () => {
  const { svc } = planted.world;
  const files = searchFiles(svc.home, planted.secrets);
  expect(files.searched).toBeGreaterThan(10);
  expect(files.holding).toEqual([]);
  const output = { to: 'output', route: 'svc up', status: 0, text: svc.output };
  const left = [output, ...(await readPages(planted.asker, '', '/v1/audit-events'))];
  expect(left.length).toBeGreaterThan(2);
  expect(holding(left, LAST).length).toBeGreaterThan(0);
  expect(holding(left, svc.runFile.control_url)).toEqual(['output']);
  expect(holding(left, ...planted.secrets)).toEqual([]);
});
