import { expect, it } from 'vitest';
import { run, waitForEnd } from '../runtimes/programs.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { SVC } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { waitFor } from '../support/wait_for.ts';
import { approve, Machine } from './machine.ts';
import { Person } from './person.ts';
import type { Team } from './team.ts';
import { SIEM_HOST } from './team_world.ts';

/** How people and secrets come to a team that has its directory, and how its audit log leaves. */
export function tellMore(team: () => Team): void {
  it('is joined by somebody new with an address of its domain', async () => {
    const kim = await Person.at(team().world, 'Kim');
    await kim.visit('/sign-in');
    await kim.signIn();
    expect((await kim.visit('/enterprise')).text).toContain('Acme');
  });

  it('takes in what somebody stored who had signed up alone', async () => {
    const { sam, secrets } = team();
    const value = plantSecret();
    secrets.push(value);
    await sam.visit('/enterprises');
    await sam.submit(/^Switch to /);
    await sam.visit('/secrets/new');
    expect(await sam.submit('Store', { Path: 'alone/key', Value: value })).toContain('alone/key');
    await sam.visit('/enterprises');
    await sam.submit(/^Switch to Acme/);
    expect((await sam.visit('/secrets')).text).not.toContain('alone/key');
    await sam.visit('/enterprises');
    await sam.page.getByRole('link', { name: /^Move everything here/ }).click();
    await sam.page.waitForURL('**/merge');
    const slug = /Type (\S+) to confirm/.exec(await sam.text())?.[1] ?? '';
    await sam.submit('Move it here', { [`Type ${slug} to confirm`]: slug });
    expect((await sam.visit('/secrets')).text).toContain('alone/key');
  });

  it('takes in the vault of a machine', async () => {
    const { world, sam, secrets } = team();
    const value = plantSecret();
    secrets.push(value);
    const local = await Svc.up();
    await local.secret('local/key', value);
    const to = ['--to', world.origin, '--yes'];
    const move = run(SVC, ['--home', local.home, 'vault', 'move', ...to], { SVC_UPSTREAM_CA: world.ca.file });
    await approve(sam, move);
    expect(await waitForEnd(move)).not.toContain(value);
    await local.stop();
    expect((await sam.visit('/secrets')).text).toContain('local/key');
  });

  it('sends its audit events to a receiver', async () => {
    const { world, founder } = team();
    const machine = await Machine.at(world);
    await machine.signIn(founder);
    const add = machine.svc('audit', 'sink', 'add', 'siem', `https://${SIEM_HOST}/in`, '--from-beginning');
    expect(await waitForEnd(add)).toContain('whsec_');
    await machine.stop();
    await world.control.takeTurns();
    await waitFor('the event of the removal', () => world.received.join('').includes('control.member.removed'));
  });
}
