import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../worker/store/database.ts';
import { startRegistryServer } from '../marketplace/registry_server.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { IS_FULL, sampleOf } from '../support/full_counts.ts';
import { CONSOLE_FORMS, type FormSubjects, submitForm, takes } from './console_forms.ts';
import { CONSOLE_PAGES } from './console_pages.ts';
import { askDevice, type EverythingSeeded, seedEverything } from './console_seeds.ts';
import { consoleSuite } from './console_suite.ts';
import { type ConsoleWorld, PLANTED_SECRET } from './console_world.ts';
import { HOSTILE_ENTRY, WEATHER_VERSIONS } from './marketplace_entries.ts';
import type { OpenControl } from './open_control.ts';
import { PageWalk, type WalkOptions } from './page_walk.ts';

/** Of so many pages and forms one is tried on a runtime that is not walked thoroughly. */
const SAMPLED = 10;
/** Of so many pages one is gone through by keyboard, and the others with axe; in full, each is in both ways. */
const KEYBOARD_TURN = 3;

/** Programs can only be signed in if the control plane knows its own origin. */
const PUBLIC_URL = 'http://localhost:7420';

/** How a page is looked at: in every way in full, otherwise in one. For a long page, axe takes a minute. */
function wayOf(turn: number, isLong = false): WalkOptions {
  if (IS_FULL) return {};
  return { only: isLong || turn % KEYBOARD_TURN === 0 ? 'keyboard' : 'axe' };
}

/**
 * The pages of the console on a runtime, and then its forms without scripts. With `isThorough` all of them, each page checked at
 * every width, and by keyboard or with axe; otherwise some, and pages are only opened. The HTML is the same on every runtime.
 */
export function describeWalk(
  runtime: string,
  open: (settings: Record<string, string>) => Promise<OpenControl>,
  isThorough: boolean,
): void {
  let database: Database;
  let seeded: EverythingSeeded;
  let walk: PageWalk;
  let plain: Page;

  const start = async () => {
    const registry = await startRegistryServer({ entries: 60 });
    for (const entry of [...WEATHER_VERSIONS, HOSTILE_ENTRY]) registry.publish(entry);
    const control = await open({ SVC_REGISTRY_URL: registry.url, SVC_PUBLIC_URL: PUBLIC_URL });
    const stop = async () => {
      await control.stop();
      await registry.stop();
    };
    ({ database } = control);
    return { ...control, stop };
  };
  const prepare = async (world: ConsoleWorld) => {
    const tab = await world.open();
    seeded = await seedEverything(world, database);
    walk = await PageWalk.in(tab, world.consoleUrl);
    plain = await world.open({ javaScriptEnabled: false });
  };
  const suite = consoleSuite({ control: start, prepare });

  describe(`a page of the console on ${runtime} is accessible`, () => {
    const pages = Object.values(CONSOLE_PAGES).flat();
    const turns = pages.map((page, index) => ({ ...page, turn: index }));
    // What is not there looks alike on every route: in a sample, the first such page is looked at in every way.
    const firstGone = pages.findIndex(({ status }) => status === 404);
    test.each(turns.filter(({ turn }) => isThorough || turn % SAMPLED === 0))(
      '$name',
      async ({ path, status = 200, turn, ...options }) => {
        const address = path(seeded);
        const found =
          isThorough && (IS_FULL || status !== 404 || turn === firstGone)
            ? await walk.open(address, { ...options, ...wayOf(turn, options.isLong) })
            : await walk.visit(address);
        expect({ address, ...found }).toEqual({ address, status, problems: [] });
        expect(await walk.content()).not.toContain(PLANTED_SECRET);
      },
    );
  });

  test(`a page of the console on ${runtime} that needs sign-in is shown to nobody without one`, async () => {
    const addresses = Object.values(CONSOLE_PAGES).flatMap((pages) => pages.map(({ path }) => path(seeded)));
    const own = addresses.filter(
      (address) => !/^\/(marketplace|auth|sign-in|sign-up|invitations|docs)\b/.test(address),
    );
    const replies = await Promise.all(own.map((address) => suite.world.send(address)));
    expect(replies.filter(({ status }) => status !== 401).map(({ url }) => url)).toEqual([]);
    expect(own.length).toBeGreaterThan(40);
  });

  describe(`a form of the console on ${runtime} works without scripts`, () => {
    let subjects: FormSubjects;
    beforeAll(async () => {
      if (chromiumProblem() === null) subjects = { ...seeded, userCode: await askDevice(suite.world) };
    });

    const forms = Object.entries(CONSOLE_FORMS);
    // A form may need what an earlier one has made, so the first ones are tried.
    test.each(isThorough ? forms : sampleOf(forms, Math.ceil(forms.length / SAMPLED)))('%s', async (route, form) => {
      if (form.at !== null) await plain.goto(form.at(subjects));
      const { path, text } = await submitForm(plain, form, subjects);
      expect([path, takes(route, path)]).toEqual([path, true]);
      expect(text).toContain(form.shows);
    });

    test('and no secret was printed', () => {
      expect(suite.world.control.output()).not.toContain(PLANTED_SECRET);
    });
  });
}
