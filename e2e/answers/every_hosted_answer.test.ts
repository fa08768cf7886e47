import { afterAll, beforeAll, expect, it } from 'vitest';
import { CREDENTIALS_TYP, credentialsPayload } from '../../shared/wire/channel.ts';
import { IS_FULL } from '../support/full_counts.ts';
import { holdsAny, needlesOf } from '../support/planted_secret.ts';
import { answeredWith, holding } from './answer_sets.ts';
import { FORMS_ELSEWHERE, isElsewhere, PAGES_ELSEWHERE, READ_ELSEWHERE } from './elsewhere.ts';
import { consoleRoutes, describedReads, readEveryAnswer, type SeenAnswer } from './every_answer.ts';
import { callWithPlanted, submitWithPlanted } from './every_refusal.ts';
import { LAST } from './planter.ts';
import { type AskerName, ASKERS, type PlantedTeam, startPlantedTeam } from './planted_team.ts';

// What a hosted control plane answers to people of an enterprise, to those of another one and to nobody, searched in the same way. Outsiders
// also ask for all that the founder has read. Unless the run is a full one, each operation is called by one of them only.

/** What needs a provider, or a directory that has sent somebody. Other tests read it. */
const READ_NOWHERE = [
  /^\/auth\/(?:\{provider\}|sso|link|connectors)/,
  '/oauth/authorize',
  '/scim/v2/Users/{id}',
  '/scim/v2/Groups/{id}',
  '/v1/me/deletion',
  '/v1/enterprises/{id}/merge',
  '/v1/marketplace/readmes/{registryId}',
];
/** The same of the console. */
const PAGES_NOWHERE = [/^\/auth\//, '/account/delete', '/enterprises/{id}/merge', '/mcp-servers/{id}/authorize/forget'];
/** Forms that need another form, a provider or a proven domain, or something that nobody here has. Other tests send them. */
const FORMS_NOWHERE = [
  '/audit/views/forget',
  '/audit/retention/remove',
  '/services/{name}/test',
  '/mcp-servers/{id}/authorize/forget',
  '/enterprises/{id}/use',
  '/enterprises/{id}/ask',
  '/enterprises/requests/{id}/withdraw',
  '/enterprises/{id}/merge',
  '/account/delete',
  '/identities/link',
  '/device/decide',
  '/sign-up/code',
  '/auth/{provider}/acs',
  '/auth/{provider}/link',
  '/account/push/{id}/end',
];
/** Whether the control plane is up, and what the public registry has. */
const OPEN_TO_ALL = /^\/v1\/(?:health$|ready$|marketplace\/servers)/;
const [, ...OTHERS] = ASKERS;
const OUTSIDERS: readonly AskerName[] = ['another enterprise', 'a directory', 'nobody'];

type Answers = Record<AskerName, readonly SeenAnswer[]>;
const noAnswers = (): Answers => ({
  'the founder': [],
  'an admin': [],
  'a member': [],
  'another enterprise': [],
  'a directory': [],
  nobody: [],
});

let planted: PlantedTeam;
const reads = noAnswers();
const released = noAnswers();
const calls = noAnswers();
const forms = noAnswers();

/** What some of them were answered, by name. */
function answersTo(names: readonly AskerName[], ...kinds: readonly Answers[]): readonly SeenAnswer[] {
  return kinds.flatMap((kind) =>
    names.flatMap((name) => kind[name].map((answer) => ({ ...answer, to: `${answer.to} as ${name}` }))),
  );
}

beforeAll(async () => {
  planted = await startPlantedTeam();
  const { askers, more, planter } = planted;
  for (const name of ASKERS) {
    const alsoAsked = OUTSIDERS.includes(name) ? pathsOfThings(reads['the founder']) : [];
    reads[name] = await readEveryAnswer(askers[name], [...more, ...alsoAsked]);
    released[name] = [await askForValue(name)];
  }
  for (const [turn, name] of ASKERS.entries()) {
    const chosen = (index: number) => IS_FULL || index % ASKERS.length === turn;
    calls[name] = await callWithPlanted(askers[name], planter.stored, chosen);
  }
  // The founder's come last: they take away what the others have.
  for (const name of ASKERS.toReversed()) {
    forms[name] = await submitWithPlanted(askers[name], reads[name], planter.stored);
  }
});
afterAll(() => planted?.stop());

/** The paths that name one thing. */
function pathsOfThings(answers: readonly SeenAnswer[]): readonly string[] {
  return answers.filter(({ route }) => route.includes('{')).map(({ to }) => to.slice(to.indexOf('/')));
}

/** Asks for the founder's value, as a sidecar does. */
async function askForValue(name: AskerName): Promise<SeenAnswer> {
  const route = '/v1/sidecar/credentials';
  const body = { request_id: crypto.randomUUID(), credentials: [{ owner: 'personal', path: LAST }] };
  const reply = await planted.askers[name].sidecar.call('POST', route, { body });
  return { to: `POST ${route}`, route, status: reply.status, text: await reply.text() };
}

it('reads and sends what only a hosted control plane has', async () => {
  const seen = answeredWith(answersTo(ASKERS, reads), 200);
  const described = await describedReads(planted.askers.nobody);
  const unread = described.filter((route) => isElsewhere(route, READ_ELSEWHERE) && !seen.has(route));
  const unseen = consoleRoutes('get').filter((route) => isElsewhere(route, PAGES_ELSEWHERE) && !seen.has(route));
  const sent = new Set(answersTo(ASKERS, forms).map(({ route }) => route));
  const unsent = FORMS_ELSEWHERE.filter((route) => !sent.has(route));
  expect(unread.filter((route) => !isElsewhere(route, READ_NOWHERE))).toEqual([]);
  expect(unseen.filter((route) => !isElsewhere(route, PAGES_NOWHERE))).toEqual([]);
  expect(unsent.toSorted()).toEqual(FORMS_NOWHERE.toSorted());
  const faults = answersTo(ASKERS, reads, released, calls, forms).filter(({ status }) => status >= 500);
  // An authorisation server that nobody reaches.
  expect(faults.filter(({ to }) => !/^form \/connectors\/\w+\/authorize /.test(to))).toEqual([]);
});

it('shows what belongs to an enterprise to its people alone', () => {
  const { shown } = planted.planter;
  const counts = ASKERS.map((name) => holding([...reads[name], ...calls[name], ...forms[name]], shown, LAST).length);
  const seesIt = ASKERS.map((name) => !OUTSIDERS.includes(name));
  expect([counts, counts.map((count) => count > 0)]).toEqual([counts, seesIt]);
  for (const name of OUTSIDERS) {
    const asked = new Set(reads[name].map(({ to }) => to));
    const unasked = pathsOfThings(reads['the founder']).filter(
      (path) => path.startsWith('/v1/') && !asked.has(`GET ${path}`),
    );
    expect([name, unasked]).toEqual([name, []]);
  }
  const ofMember = holding(reads['a member'], shown);
  for (const to of [/^GET \/v1\/host-bindings$/, /^page \/bindings\/bnd_/, /^GET \/v1\/sidecar\/snapshot$/]) {
    expect([to, ofMember.some((each) => to.test(each))]).toEqual([to, true]);
  }
});

it('answers nobody', () => {
  const all = [...reads.nobody, ...released.nobody, ...calls.nobody];
  const ofSomebody = all.filter(({ route }) => route.startsWith('/v1/') && !OPEN_TO_ALL.test(route));
  expect(ofSomebody.length).toBeGreaterThan(200);
  expect(ofSomebody.filter(({ status }) => status !== 401)).toEqual([]);
});

it('finds no value that the control plane stores or mints, and none that was sent in the place of a secret', () => {
  expect(planted.secrets.length).toBeGreaterThan(20);
  const found = holding(answersTo(ASKERS, reads, released, calls, forms), ...planted.secrets);
  expect(new Set(found)).toEqual(new Set());
});

it('gives a value to the sidecar of its owner only, sealed for it', async () => {
  const { askers, planter } = planted;
  const given = await Promise.all(
    ASKERS.map(async (name) => {
      const [answer] = released[name];
      if (answer?.status !== 200) return [];
      const { sidecar } = askers[name];
      const { credentials } = await sidecar.verify(answer.text, CREDENTIALS_TYP, credentialsPayload);
      return Promise.all(credentials.map(({ sealed }) => sidecar.unseal(sealed)));
    }),
  );
  expect(given).toEqual([[{ value: planter.stored }], ...OTHERS.map(() => [])]);
});

it('leaves none in its database and its log', async () => {
  const { control, planter, secrets } = planted;
  const left = [await control.databaseBytes(), Buffer.from(JSON.stringify(control.log))];
  expect(left.map((bytes) => holdsAny(bytes, needlesOf(planter.shown)))).toEqual([true, false]);
  expect(control.log.length).toBeGreaterThan(500);
  expect(left.map((bytes) => holdsAny(bytes, needlesOf(secrets)))).toEqual([false, false]);
});
