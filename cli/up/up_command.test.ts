import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => {
  vi.restoreAllMocks();
  home.remove();
});

test.each(['--detach', '--in-background'])("svc up %s writes nothing into another user's directory", async (flag) => {
  const before = readdirSync(home.path);
  const own = process.getuid?.() ?? 0;
  vi.spyOn(process, 'getuid').mockReturnValue(own + 1);
  const { code, stderr } = await runCli(home, ['up', flag]);
  expect(code).toBe(1);
  expect(stderr).toContain(`${home.path} belongs to user ${own}`);
  expect(readdirSync(home.path)).toEqual(before);
});
