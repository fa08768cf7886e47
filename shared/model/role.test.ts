import { expect, test } from 'vitest';
import { hasRole, ROLES } from './role.ts';

test.each([
  ['owner', ['owner', 'admin', 'member']],
  ['admin', ['admin', 'member']],
  ['member', ['member']],
] as const)('%s may do what %j may', (role, allowed) => {
  expect(ROLES.filter((needed) => hasRole(role, needed))).toEqual(allowed);
});
