import { expect, test } from 'vitest';
import { NAVIGATION, pageAbove } from './navigation.ts';

test('the navigation has at most nine entries', () => {
  expect(NAVIGATION.flatMap(({ entries }) => entries).length).toBeLessThanOrEqual(9);
});

test.each([
  ['/approvals/apr_1', '/approvals', 'Approvals'],
  ['/audit/evt_1', '/audit', 'Audit'],
  ['/marketplace/a/b', '/marketplace', 'Marketplace'],
  ['/enterprises/leave', '/enterprises', 'Your enterprises'],
])('the page above %s is %s, by its name in the navigation', (path, above, title) => {
  expect(pageAbove(path)).toMatchObject({ path: above, title });
});

test('nothing is above the path of no page', () => {
  expect(pageAbove('/nothing')).toBeNull();
});
