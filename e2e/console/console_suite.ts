import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type ControlPlaneUnderTest, startOnNode } from '../runtimes/programs.ts';
import { chromiumProblem } from '../support/chromium.ts';
import { ConsoleWorld } from './console_world.ts';

type TabOptions = Parameters<ConsoleWorld['open']>[0];

/** The world shared by a file's tests; available once they run. */
interface ConsoleSuite {
  readonly world: ConsoleWorld;
  /** A signed-in tab with its own cookies, at the given path. It is closed after the test. */
  open(path?: string | null, options?: TabOptions): Promise<Page>;
  /** The same without sign-in. */
  openSignedOut(path?: string | null, options?: TabOptions): Promise<Page>;
}

interface SuiteOptions {
  /** By default Node on the embedded database. */
  readonly control?: () => Promise<ControlPlaneUnderTest>;
  /** The time of the sidecar: by default that of this machine. */
  readonly now?: () => number;
  /** Puts into the world what the tests are about. */
  readonly prepare?: (world: ConsoleWorld) => Promise<void>;
}

/**
 * Makes the tests of a file share one world, which is stopped even if its preparation fails. Without Chromium each test is
 * skipped with the reason.
 */
export function consoleSuite({ control = startOnNode, now, prepare }: SuiteOptions = {}): ConsoleSuite {
  const missing = chromiumProblem();
  let world: ConsoleWorld | null = null;
  let pages: Page[] = [];
  beforeAll(async () => {
    if (missing !== null) return;
    world = await ConsoleWorld.start(await control(), now);
    await prepare?.(world);
  });
  afterAll(() => world?.stop());
  beforeEach(({ skip }) => {
    if (missing !== null) skip(missing);
  });
  afterEach(async () => {
    for (const page of pages) await page.context().close();
    pages = [];
  });
  const started = () => {
    if (world === null) throw new Error('the world of the suite has not started');
    return world;
  };
  const at = async (page: Page, path: string | null) => {
    pages.push(page);
    if (path !== null) await page.goto(path);
    return page;
  };
  return {
    get world() {
      return started();
    },
    open: async (path = null, options = {}) => at(await started().open(options), path),
    openSignedOut: async (path = null, options = {}) => at(await started().openSignedOut(options), path),
  };
}
