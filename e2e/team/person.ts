import type { Page } from 'playwright-core';
import { enterField } from '../console/console_forms.ts';
import { DOMAIN, type TeamWorld } from './team_world.ts';
import { HANGS_MS } from '../support/hangs.ts';

/** Somebody with a browser of their own and an address at the provider. */
export class Person {
  readonly name: string;
  readonly email: string;
  readonly page: Page;
  readonly #world: TeamWorld;

  private constructor(world: TeamWorld, name: string, page: Page) {
    this.#world = world;
    this.name = name;
    this.email = `${name.toLowerCase()}@${DOMAIN}`;
    this.page = page;
  }

  static async at(world: TeamWorld, name: string): Promise<Person> {
    const context = await world.chromium.newContext({ baseURL: world.origin, reducedMotion: 'reduce' });
    context.setDefaultTimeout(HANGS_MS);
    return new Person(world, name, await context.newPage());
  }

  /** Opens a page, and returns the status and its text. */
  async visit(path: string): Promise<{ readonly status: number; readonly text: string }> {
    const reply = await this.page.goto(path);
    return { status: reply?.status() ?? 0, text: await this.text() };
  }

  text(): Promise<string> {
    return this.page.locator('main').innerText();
  }

  /** Fills in the form of the open page and sends it; returns the text of the page that follows. */
  async submit(press: string | RegExp, fields: Readonly<Record<string, string>> = {}): Promise<string> {
    for (const [label, value] of Object.entries(fields)) await enterField(this.page, label, value);
    const button = this.page.getByRole('button', { name: press, exact: true }).filter({ visible: true }).first();
    await Promise.all([this.page.waitForEvent('load'), button.click()]);
    return this.text();
  }

  /** Signs in at the provider, from the page of the ways to sign in. */
  async signIn(): Promise<void> {
    const { name, email } = this;
    this.#world.openId.person = { sub: name.toLowerCase(), email, email_verified: true, name };
    await this.page.getByRole('link', { name: 'Continue with Single sign-on' }).click();
    await this.page
      .locator('main')
      .getByText(`Signed in as ${name}`)
      .or(this.page.getByRole('button', { name: 'Join' }))
      .waitFor();
  }
}
