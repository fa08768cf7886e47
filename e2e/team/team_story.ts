import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { runSvc, waitForEnd } from '../runtimes/programs.ts';
import { OPENID_CLIENT_ID, OPENID_CLIENT_SECRET } from '../sign_in/openid_provider.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { IS_FULL } from '../support/full_counts.ts';
import { foundIn, searchFiles } from '../support/planted_secret.ts';
import { waitFor } from '../support/wait_for.ts';
import type { Machine } from './machine.ts';
import { startTeam, type Team } from './team.ts';
import type { StartHosted } from './team_runtimes.ts';
import { tellMore } from './team_more.ts';
import { API_HOST, DOMAIN } from './team_world.ts';

const MISSING = chromiumProblem();
const GROUP = 'Deployers';
/** Prints the status of the reply; 000 for none. */
const CURL = `curl -sS -o /dev/null -w '%{http_code}\\n'`;
const runOnce = (machine: Machine, method = 'GET') =>
  waitForEnd(machine.svc('run', '--', 'sh', '-c', `${CURL} -X ${method} https://${API_HOST}/once`));

/** So many requests of an agent in a row without the credential. */
const REFUSALS = 5;

/** How soon everything of a removed person has ended. The sampled run, on a machine that does other things, times nothing. */
const MOST_MS = IS_FULL ? 5000 : Number.POSITIVE_INFINITY;

const scimUser = z.object({ id: z.string(), active: z.boolean() });

/** From the first owner of an installation to a person whom the directory removes. Each step continues from the one before. */
export function describeTeamStory(runtime: string, start: StartHosted): void {
  describe(`a team on ${runtime}`, () => {
    tellStory(start);
  });
}

function tellStory(start: StartHosted): void {
  let team: Team;

  beforeAll(async () => {
    if (MISSING === null) team = await startTeam(start);
  });
  afterAll(() => team?.stop());
  beforeEach(({ skip }) => {
    if (MISSING !== null) skip(MISSING);
  });

  it('begins with an owner, who opens the link of the operator and signs in', async () => {
    const { world, founder, patsMachine } = team;
    const args = ['db', 'owner', founder.email, '--enterprise', 'Acme'];
    const made = await runSvc(patsMachine.home, args, world.settings);
    expect([made.exitCode, made.stderr]).toEqual([
      0,
      expect.stringContaining(`${founder.email} owns a new enterprise`),
    ]);
    expect(await founder.visit(made.stdout.trim())).toMatchObject({ status: 200 });
    expect((await founder.visit('/enterprise')).text).toContain('Delete the enterprise');
    await founder.visit('/');
    await founder.page.getByRole('button', { name: 'Sign out' }).first().click();
    await founder.page.waitForURL('**/sign-in*');
    await founder.signIn();
    expect(await founder.page.locator('body').innerText()).toContain('Acme');
  });

  it('is joined by two people, each by a link', async () => {
    const { founder, pat, sam } = team;
    for (const person of [pat, sam]) {
      await founder.visit('/members/invite');
      const invited = await founder.submit('Invite', { Email: person.email });
      const link = /https:\/\/\S+\/invitations\/\S+/.exec(invited)?.[0] ?? '';
      expect((await person.visit(link)).text).toContain('Join Acme?');
      await person.page.getByRole('link', { name: 'Sign in' }).click();
      await person.signIn();
      await person.submit('Join');
      expect((await person.visit('/enterprise')).text).toContain('Acme');
    }
    expect((await founder.visit('/members')).text).toMatch(/Pat[^]*Sam/);
  });

  it('shares a secret with a group, for one host, scheme and effect', async () => {
    const { founder, pat, sam, secret } = team;
    await founder.visit('/groups');
    await founder.submit('Create', { 'Name of a new group': GROUP });
    expect(await founder.submit('Add', { 'Member of the enterprise': `Pat (${pat.email})` })).toContain('Pat');
    await founder.visit('/secrets/new');
    await founder.submit('Store', { Path: 'deploy/key', Value: secret });
    await founder.visit('/bindings/new?scheme=bearer');
    await founder.submit('Bind', { Host: API_HOST, Credential: 'vault://deploy/key', Effect: 'read' });
    await founder.visit('/shares');
    expect(await founder.submit('Share', { Group: GROUP })).toContain(GROUP);
    expect((await pat.visit('/shares')).text).toMatch(new RegExp(`${API_HOST}[^]*Fay[^]*in use`, 'i'));
    expect((await sam.visit('/shares')).text).toContain('Nothing is shared with you');
    expect((await sam.visit('/secrets')).text).not.toContain('deploy/key');
  });

  it('a person in the group uses the secret from a machine, and a person outside of it does not', async () => {
    const { world, pat, sam, patsMachine, samsMachine, secret } = team;
    for (const [machine, person] of [
      [patsMachine, pat],
      [samsMachine, sam],
    ] as const) {
      expect(await machine.signIn(person)).toContain(`signed in to ${world.origin}`);
      await machine.startSidecar();
    }
    expect(await runOnce(patsMachine)).toBe('200\n');
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${secret}`]);
    expect(await runOnce(samsMachine)).toBe('401\n');
    expect(world.upstream.last().headers('authorization')).toEqual([]);
    expect(await runOnce(patsMachine, 'POST')).toBe('403\n');
  });

  it('is connected to its directory by the owner', async () => {
    const { world, founder } = team;
    await founder.visit('/enterprise');
    const fields = {
      Issuer: world.openId.origin,
      'Client id': OPENID_CLIENT_ID,
      'Client secret': OPENID_CLIENT_SECRET,
      'Its domains': DOMAIN,
    };
    const unproven = await founder.submit('Save the settings', fields);
    expect(unproven).toContain('/.well-known/svc-enterprise.txt');
    world.domain.proof = `${/ent_\w{26}/.exec(unproven)?.[0]}\n`;
    await founder.submit('Save the settings', fields);
    await founder.page.waitForURL('**/enterprise?done=settings_changed');
    await founder.visit('/directory');
    const shown = await founder.submit('Create', { 'Name of a new token': 'Okta', 'Days until it expires': '30' });
    team.directory = /svc_scim_[\w-]{43}/.exec(shown)?.[0] ?? '';
    expect(shown).toContain(`${world.origin}/scim/v2`);
  });

  it('everything of a person ends whom the directory removes, also what runs', async ({ annotate }) => {
    const { founder, pat, patsMachine, samsMachine, injectedAt, call } = team;
    await pat.visit('/account/tokens/new');
    const shown = await pat.submit('Create', { Name: 'ci', 'Days until it expires': '30', 'account:read': 'yes' });
    const personalToken = /svc_pat_[\w-]+/.exec(shown)?.[0] ?? '';
    expect((await call(personalToken, 'GET', '/v1/me')).status).toBe(200);
    const linked = scimUser.parse((await call(team.directory, 'POST', '/scim/v2/Users', { userName: pat.email })).body);
    const loop = `while :; do ${CURL} -m 60 https://${API_HOST}/work 2>/dev/null; sleep 0.1; done`;
    const agent = patsMachine.svc('run', '--', 'sh', '-c', loop);
    const outcomes = () => agent.output().trim().split('\n');
    await waitFor('requests of the agent', () => outcomes().filter((line) => line === '200').length > 2);

    const removedAt = Date.now();
    const untilNow = () => Date.now() - removedAt;
    expect((await call(team.directory, 'DELETE', `/scim/v2/Users/${linked.id}`)).status).toBe(204);
    const told = waitForEnd(patsMachine.svc('api', 'GET', '/v1/me')).then((text) => ({ text, ms: untilNow() }));
    expect((await pat.visit('/')).status).toBe(401);
    const browserMs = untilNow();
    expect((await call(personalToken, 'GET', '/v1/me')).status).toBe(401);
    const tokenMs = untilNow();
    await waitFor('the end of the requests', () => !outcomes().slice(-REFUSALS).includes('200'));
    const proxyMs = (injectedAt.at(-1) ?? 0) - removedAt;
    const cli = await told;
    expect(cli.text).toContain('has ended');
    const endedMs = { browser: browserMs, token: tokenMs, proxy: proxyMs, cli: cli.ms };
    await annotate(`how long after the removal was sent each had ended, in ms: ${JSON.stringify(endedMs)}`);
    expect(Object.entries(endedMs).filter(([, ms]) => ms >= MOST_MS)).toEqual([]);
    const ended = injectedAt.length;
    expect(await runOnce(patsMachine)).not.toContain('200');
    const lines = outcomes().length;
    await waitFor('more of the agent', () => agent.child.exitCode !== null || outcomes().length > lines + REFUSALS);
    expect(injectedAt).toHaveLength(ended);
    expect(await runOnce(samsMachine)).toBe('401\n');
    expect((await founder.visit('/members')).text).not.toContain('Pat');
  });

  if (IS_FULL) tellMore(() => team);

  it('the secret is in no output, page, log or file', async () => {
    const { world, founder, secrets, injectedAt } = team;
    await founder.visit('/audit');
    expect(injectedAt.length).toBeGreaterThan(3);
    const machines = [team.patsMachine, team.samsMachine];
    const printed = [world.control.output(), ...machines.map((machine) => machine.output())];
    const found = (text: string | Buffer) => secrets.flatMap((secret) => foundIn(text, secret));
    for (const text of printed) expect(found(text)).toEqual([]);
    expect(world.replies.length).toBeGreaterThan(50);
    expect(found(Buffer.concat(world.replies))).toEqual([]);
    for (const folder of [world.databaseFolder, ...machines.map(({ home }) => home)]) {
      expect(searchFiles(folder, secrets).holding).toEqual([]);
    }
  });
}
