import type { Locator, Page } from 'playwright-core';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { approvalRecord, approvalsPage } from '../../shared/wire/approvals.ts';
import { SYSTEM_CLOCK } from '../../worker/kernel/clock.ts';
import { consoleSuite } from './console_suite.ts';
import { serveInProcess } from './serve_in_process.ts';

// Issue 22: an agent chooses when the list changes. A person decides only about what they saw, and what they look at stays.

let connectorId = '';
let aheadMs = 0;
const clock = { ...SYSTEM_CLOCK, now: () => Date.now() + aheadMs };
const suite = consoleSuite({
  control: () => serveInProcess(clock),
  now: clock.now,
  prepare: async (world) => {
    ({ connectorId } = await world.seed());
    await decideAll();
  },
});
afterEach(() => decideAll());

const HOLD_MS = 60_000;
/** Longer than a list waits for further events. */
const SETTLED_MS = 1_000;

async function listPending(): Promise<readonly string[]> {
  const { items } = approvalsPage.parse(await suite.world.api('GET', '/v1/approvals?state=pending'));
  return items.map(({ id }) => id);
}

async function decideAll(): Promise<void> {
  for (const id of await listPending()) {
    await suite.world.api('POST', `/v1/approvals/${id}/decide`, { decision: 'deny' });
  }
}

async function stateOf(id: string): Promise<string> {
  return approvalRecord.parse(await suite.world.api('GET', `/v1/approvals/${id}`)).state;
}

const ask = (item: number, fingerprint?: string) =>
  suite.world.askApproval(connectorId, `Items: delete item ${item}`, fingerprint);
const cardOf = (page: Page, item: number) =>
  page.locator('.card').filter({ has: page.getByText(`Items: delete item ${item}`, { exact: true }) });
const approve = (card: Locator) => card.getByRole('button', { name: /^Approve/ });

/** The list, whose time only passes when a test says so. */
async function openStill(): Promise<Page> {
  const page = await suite.open();
  await page.clock.install();
  await page.goto('/approvals');
  await pauseSoon(page);
  return page;
}

/** Once the page is live, its time stands still. On a busy machine it may pass a moment before it can be told to stop there. */
async function pauseSoon(page: Page): Promise<void> {
  await page.locator('[data-live-of=approvals]').getByText('Live').waitFor();
  await expect
    .poll(() =>
      page.clock.pauseAt(Date.now() + SETTLED_MS).then(
        () => 'paused',
        (error: unknown) => String(error),
      ),
    )
    .toBe('paused');
}

/** Until what a page was opened with is at its place for long enough since its scripts run. */
async function waitSteady(page: Page): Promise<void> {
  await page.locator('[data-live-of=approvals]').getByText('Live').waitFor();
  const begun = Number(await page.evaluate('performance.now()'));
  await expect.poll(() => page.evaluate('performance.now()')).toBeGreaterThan(begun + SETTLED_MS);
}

/** Until the page has answered a press: that the list has just changed, or with what was decided. */
const answerOf = (page: Page) =>
  Promise.race([refusalOf(page), page.waitForURL(({ searchParams }) => searchParams.has('done'))]);
const refusalOf = (page: Page) => page.getByRole('alert').getByText('The list has just changed').waitFor();

/** Lets the page's time pass until an element is there. */
async function passUntil(page: Page, there: Locator): Promise<void> {
  await expect
    .poll(async () => {
      await page.clock.runFor(SETTLED_MS / 10);
      return there.count();
    })
    .toBeGreaterThan(0);
}

describe('a button under the pointer', () => {
  test.each(['by mouse', 'by key'])('does nothing while its card has just come: %s', async (how) => {
    await ask(1);
    const page = await openStill();
    const harmful = await ask(2);
    const card = cardOf(page, 2);
    await passUntil(page, card);
    const decide = () => (how === 'by mouse' ? approve(card).click() : card.press('a'));
    await decide();
    await answerOf(page);
    expect(await stateOf(harmful)).toBe('pending');
    await page.clock.runFor(SETTLED_MS);
    await decide();
    await page.waitForURL('**/approvals?done=approved');
    expect(await stateOf(harmful)).toBe('approved');
  });

  test('does nothing after another card has gone and its own moved up, and the new ones come below', async () => {
    const first = await ask(1);
    await ask(2);
    const page = await openStill();
    await ask(3);
    await passUntil(page, cardOf(page, 3));
    expect(await page.locator('.card .asked').allInnerTexts()).toEqual(
      [1, 2, 3].map((item) => `Items: delete item ${item}`),
    );
    await page.clock.runFor(SETTLED_MS);
    await suite.world.api('POST', `/v1/approvals/${first}/decide`, { decision: 'deny' });
    await expect
      .poll(async () => {
        await page.clock.runFor(SETTLED_MS / 10);
        return cardOf(page, 1).count();
      })
      .toBe(0);
    await approve(cardOf(page, 2)).click();
    await answerOf(page);
    expect(await listPending()).toHaveLength(2);
  });

  test('of a card that stayed where it was decides at once', async () => {
    const first = await ask(1);
    const page = await openStill();
    await ask(2);
    await passUntil(page, cardOf(page, 2));
    await approve(cardOf(page, 1)).click();
    await page.waitForURL('**/approvals?done=approved');
    expect(await stateOf(first)).toBe('approved');
  });

  test('that is pressed twice approves once, and says so', async () => {
    await ask(1);
    const page = await suite.open('/approvals');
    await waitSteady(page);
    await approve(cardOf(page, 1)).dblclick();
    await page.waitForURL('**/approvals?done=*');
    expect(new URL(page.url()).searchParams.get('done')).toBe('approved');
  });

  test('does nothing to the next request, which is where the one before was, until it could be seen', async () => {
    const [first, second] = [await ask(1), await ask(2)];
    const page = await openStill();
    await approve(cardOf(page, 1)).click();
    await page.waitForURL('**/approvals?done=approved');
    await expect.poll(() => page.evaluate(`document.activeElement.matches('.card.held')`)).toBe(true);
    await cardOf(page, 2).press('a');
    await refusalOf(page);
    expect([await stateOf(first), await stateOf(second)]).toEqual(['approved', 'pending']);
  });

  test('in the list of all decides nothing that has just come either', async () => {
    const page = await suite.open();
    await page.clock.install();
    await page.goto('/approvals?state=all');
    await pauseSoon(page);
    const asked = await ask(7);
    const row = page.getByRole('row').filter({ hasText: 'Items: delete item 7' });
    await passUntil(page, row);
    await row.getByRole('button', { name: /^Approve/ }).click();
    await answerOf(page);
    expect(await stateOf(asked)).toBe('pending');
  });
});

test('the list opens with the focus on who waits longest, and keys act on that card alone', async () => {
  const [first, second] = [await ask(1), await ask(2)];
  const page = await suite.open('/approvals');
  await waitSteady(page);
  await expect.poll(() => page.evaluate(`document.activeElement.matches('.card')`)).toBe(true);
  await page.keyboard.press('d');
  await page.waitForURL('**/approvals?done=denied');
  expect([await stateOf(first), await stateOf(second)]).toEqual(['denied', 'pending']);
});

test('without scripts a decision is a form, and no key is named', async () => {
  const asked = await ask(1);
  const page = await suite.open('/approvals', { javaScriptEnabled: false });
  expect(await page.locator('.card kbd').first().isVisible()).toBe(false);
  await approve(cardOf(page, 1)).click();
  await page.waitForURL('**/approvals?done=approved');
  expect(await stateOf(asked)).toBe('approved');
});

test('what is shown, opened and focused stays while others come and the agent gives up, and it is told that it waits again', async () => {
  const fingerprint = 'a'.repeat(64);
  const asked = await ask(1, fingerprint);
  const page = await suite.open();
  await page.addInitScript(NOTED_NOTIFICATIONS);
  await page.clock.install();
  await page.goto('/approvals');
  await page.locator('[data-live-of=approvals]').getByText('Live').waitFor();
  const card = cardOf(page, 1);
  await card.getByText('Allow more like this').click();
  await card.getByRole('button', { name: /^Show what is sent/ }).press('s');
  const line = 'DELETE https://api.example.test/items/1';
  await suite.world.showRequest(asked, { line, content_type: 'text/plain', bytes: 3, text: 'why' });
  await card.locator('pre').waitFor();
  const hasStayed = async () => [
    await card.locator('pre').innerText(),
    await card.locator('details').getAttribute('open'),
    await page.evaluate(`document.activeElement.dataset.press`),
  ];
  await ask(2);
  await cardOf(page, 2).waitFor();
  expect(await hasStayed()).toEqual(['why', '', 's']);

  aheadMs += HOLD_MS;
  await page.clock.fastForward(HOLD_MS);
  await page.getByRole('heading', { name: 'Given up' }).waitFor();
  expect(await page.getByRole('heading', { name: 'Agents wait for these' }).count()).toBe(0);
  expect((await hasStayed()).slice(0, 2)).toEqual(['why', '']);

  expect(await ask(1, fingerprint)).toBe(asked);
  await page.getByRole('heading', { name: 'Agents wait for these' }).waitFor();
  await card
    .locator('.ring')
    .getByText(/^\d+ s$/)
    .waitFor();
  await expect.poll(() => notesOf(page)).toEqual([2, 1].map((item) => `Items: delete item ${item}`));
});

/** Stands for the system's notifications, which a headless browser does not show. */
const NOTED_NOTIFICATIONS = `
  window.notes = [];
  window.focused = 0;
  window.focus = () => { window.focused += 1; };
  window.Notification = class extends EventTarget {
    static permission = 'granted';
    constructor(title, { body, tag }) { super(); this.body = body; this.tag = tag; window.notes.push(this); }
    close() {}
  };`;

async function notesOf(page: Page): Promise<string[]> {
  return z.array(z.string()).parse(await page.evaluate('notes.map(({ body }) => body)'));
}

/** Where the person was not asked yet, and gives this answer. */
const notedAnswer = (answer: 'granted' | 'denied') =>
  `${NOTED_NOTIFICATIONS}
  window.Notification.permission = 'default';
  window.Notification.requestPermission = async () => (window.Notification.permission = '${answer}');`;

const clickLastNote = (page: Page) => page.evaluate(`notes.at(-1).dispatchEvent(new Event('click'))`);

test('a click on a notification opens the list in a tab of its own, or goes to the one that has it', async () => {
  const form = await suite.open();
  await form.context().addInitScript(NOTED_NOTIFICATIONS);
  await form.goto('/secrets/new');
  await form.getByLabel('Path').fill('user/half-typed');
  await expect.poll(() => form.evaluate('Object.keys(localStorage).join()')).toContain('svc-waiting usr_');
  await ask(1);
  await expect.poll(() => notesOf(form)).toEqual(['Items: delete item 1']);
  const [list] = await Promise.all([form.context().waitForEvent('page'), clickLastNote(form)]);
  await list.waitForURL('**/approvals');
  await cardOf(list, 1).waitFor();
  expect(await form.getByLabel('Path').inputValue()).toBe('user/half-typed');

  await list.locator('[data-live-of=approvals]').getByText('Live').waitFor();
  await ask(2);
  // That of the list has the same tag, so that it takes the place of the other one.
  await expect.poll(() => notesOf(list)).toEqual(['Items: delete item 2']);
  expect(await list.evaluate('notes[0].tag')).toBe(await form.evaluate('notes[1].tag'));
  await clickLastNote(list);
  expect(await list.evaluate('focused')).toBe(1);
  expect(form.context().pages()).toHaveLength(2);
});

const notifyButton = (page: Page) => page.getByRole('button', { name: 'Notify me of new requests' });

async function openAnswering(script: string): Promise<Page> {
  const page = await suite.open();
  await page.addInitScript(script);
  await page.goto('/approvals');
  await page.locator('[data-live-of=approvals]').getByText('Live').waitFor();
  return page;
}

describe('the button for notifications', () => {
  test('asks the browser, and says that it was allowed', async () => {
    const page = await openAnswering(notedAnswer('granted'));
    await notifyButton(page).click();
    await page.getByText('You are notified while a page of svc is open.').waitFor();
    expect(await notifyButton(page).count()).toBe(0);
    await expect.poll(() => page.evaluate('Object.keys(localStorage).join()')).toContain('svc-waiting usr_');
    const before = (await notesOf(page)).length;
    await ask(9);
    await expect.poll(async () => (await notesOf(page)).slice(before)).toEqual(['Items: delete item 9']);
  });

  test('is gone after the person has refused', async () => {
    const page = await openAnswering(notedAnswer('denied'));
    await notifyButton(page).click();
    await notifyButton(page).waitFor({ state: 'detached' });
    expect(await page.locator('main').innerText()).not.toContain('You are notified');
  });

  test('is not there where the browser was asked before', async () => {
    const page = await openAnswering(NOTED_NOTIFICATIONS);
    expect(await notifyButton(page).count()).toBe(0);
  });
});
