import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseFilter, parsePatchPath } from './filter.ts';
import { applyPatch, parsePatch } from './patch.ts';
import { addressOf, displayNameOf, parseGroup, parseUser } from './resources.ts';
import { GROUP_KIND, PATCH_SCHEMA, USER_KIND } from './schemas.ts';

const USER = {
  userName: 'anna@acme.test',
  externalId: 'X1',
  active: true,
  name: { givenName: 'Anna', familyName: 'Ask' },
  emails: [{ value: 'anna@acme.test', type: 'work', primary: true }],
};
const GROUP = { displayName: 'Data', members: [{ value: 'usr_a' }, { value: 'usr_b' }] };

function patch(kind: typeof USER_KIND, resource: object, ...operations: unknown[]) {
  const parsed = parsePatch({ schemas: [PATCH_SCHEMA], Operations: operations });
  if (!parsed.ok) return parsed.error.scimType;
  const patched = applyPatch({ ...resource }, parsed.value, kind.attributes);
  return patched.ok ? patched.value : patched.error.scimType;
}
const user = (...operations: unknown[]) => patch(USER_KIND, USER, ...operations);
const group = (...operations: unknown[]) => patch(GROUP_KIND, GROUP, ...operations);
const members = (...operations: unknown[]) => {
  const patched = group(...operations);
  return typeof patched === 'string' ? patched : patched['members'];
};

describe('PATCH of a user', () => {
  test('Entra deactivates with a capital and a string', () => {
    const patched = user({ op: 'Replace', path: 'active', value: 'False' });
    expect(parseUser(patched)).toMatchObject({ ok: true, value: { active: false, userName: USER.userName } });
  });

  test('Okta deactivates without a path', () => {
    expect(user({ op: 'replace', value: { active: false } })).toEqual({ ...USER, active: false });
  });

  test('Entra replaces parts by names with dots and with the schema', () => {
    const value = {
      displayName: 'Anna A.',
      'name.givenName': 'An',
      'urn:ietf:params:scim:schemas:core:2.0:User:externalId': 'X2',
      'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department': 'Sales',
    };
    const name = { givenName: 'An', familyName: 'Ask' };
    expect(user({ op: 'Replace', value })).toEqual({ ...USER, displayName: 'Anna A.', externalId: 'X2', name });
  });

  test('a path with a filter changes the element that fits, and makes it if none does', () => {
    const path = 'emails[type eq "work"].value';
    expect(user({ op: 'Replace', path, value: 'a@acme.test' })).toEqual({
      ...USER,
      emails: [{ value: 'a@acme.test', type: 'work', primary: true }],
    });
    const home = { op: 'Add', path: 'emails[type eq "home"].value', value: 'h@acme.test' };
    expect(user(home)).toEqual({ ...USER, emails: [...USER.emails, { type: 'home', value: 'h@acme.test' }] });
  });

  test('a new primary address takes that from the other (RFC 7644 section 3.5.2)', () => {
    const value = [{ value: 'new@acme.test', primary: true }];
    expect(user({ op: 'add', path: 'emails', value })).toMatchObject({
      emails: [
        { value: 'anna@acme.test', type: 'work' },
        { value: 'new@acme.test', primary: true },
      ],
    });
  });

  test('several operations apply in order, and removals delete', () => {
    const patched = user(
      { op: 'remove', path: 'name.familyName' },
      { op: 'add', path: 'displayName', value: 'x' },
      { op: 'remove', path: 'displayName' },
      { op: 'remove', path: 'externalId' },
    );
    expect(patched).toEqual({
      userName: USER.userName,
      active: true,
      name: { givenName: 'Anna' },
      emails: USER.emails,
    });
  });

  test.each([
    [{ op: 'remove' }, 'noTarget'],
    [{ op: 'move', path: 'active' }, 'invalidSyntax'],
    [{ op: 'replace', path: 'groups', value: [] }, 'mutability'],
    [{ op: 'replace', path: 'emails[type eq "work"', value: [] }, 'invalidPath'],
    [{ op: 'replace', path: 'active[type eq "work"]', value: [] }, 'invalidPath'],
    [{ op: 'replace', path: 'name', value: 'Anna' }, 'invalidValue'],
    [{ op: 'replace', path: 'emails[type ne "x"].value', value: 1 }, expect.objectContaining({ ok: false })],
    [{ op: 'replace', path: 'emails[type co "home"].value', value: 'x' }, 'noTarget'],
    [{ op: 'replace', value: 'x' }, 'invalidValue'],
  ])('%j is %s', (operation, refusal) => {
    const patched = user(operation);
    expect(typeof patched === 'string' ? patched : parseUser(patched)).toEqual(refusal);
  });

  test('attributes that are not kept, a password among them, leave no trace', () => {
    const value = { password: 'hunter2', locale: 'en', __proto__: { active: false } };
    expect(user({ op: 'replace', value }, { op: 'add', path: 'password', value: 'hunter2' })).toEqual(USER);
    const read = parseUser({ ...USER, password: 'hunter2', roles: ['owner'], id: 'usr_x' });
    expect(JSON.stringify(read)).not.toMatch(/hunter2|owner|usr_x/);
  });
});

describe('PATCH of the members of a group', () => {
  test('Okta and Entra add, once each', () => {
    const value = [{ value: 'usr_c', display: 'C', $ref: null }, { value: 'usr_a' }];
    expect(members({ op: 'Add', path: 'members', value })).toEqual([
      { value: 'usr_b' },
      { value: 'usr_c', display: 'C' },
      { value: 'usr_a' },
    ]);
  });

  test('one member is removed by a filter, or by a value', () => {
    expect(members({ op: 'remove', path: 'members[value eq "usr_a"]' })).toEqual([{ value: 'usr_b' }]);
    expect(members({ op: 'Remove', path: 'members', value: [{ $ref: null, value: 'usr_a' }] })).toEqual([
      { value: 'usr_b' },
    ]);
  });

  test('an empty list of members to remove removes nobody; no list removes all', () => {
    expect(members({ op: 'remove', path: 'members', value: [] })).toEqual(GROUP.members);
    expect(members({ op: 'remove', path: 'members' })).toEqual([]);
  });

  test('Okta replaces the name with the id, and the whole list', () => {
    expect(group({ op: 'replace', value: { id: 'grp_x', displayName: 'New' } })).toEqual({
      ...GROUP,
      displayName: 'New',
    });
    expect(members({ op: 'replace', path: 'members', value: [{ value: 'usr_z' }] })).toEqual([{ value: 'usr_z' }]);
  });

  test('a member cannot be turned into another one', () => {
    expect(members({ op: 'replace', path: 'members[value eq "usr_a"].value', value: 'usr_b' })).toBe('mutability');
  });
});

describe('filters', () => {
  test.each([
    'userName eq "bjensen"',
    'name.familyName co "O\'Malley"',
    'urn:ietf:params:scim:schemas:core:2.0:User:userName sw "J"',
    'title pr',
    'meta.lastModified gt "2011-05-13T04:42:34Z"',
    'title pr and userType eq "Employee"',
    'title pr or userType eq "Intern"',
    'userType eq "Employee" and (emails co "example.com" or emails.value co "example.org")',
    'userType ne "Employee" and not (emails co "example.com" or emails.value co "example.org")',
    'userType eq "Employee" and emails[type eq "work" and value co "@example.com"]',
    'emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]',
    'emails[type eq "work"].value eq "x@y.z"',
    'id eq "grp_x" and members eq "usr_x"',
    'active eq TRUE AND userName EQ "x"',
  ])('reads the example %s', (text) => {
    expect(parseFilter(text)).toMatchObject({ ok: true });
  });

  test('and binds stronger than or', () => {
    const either = parseFilter('a pr or b pr and c pr');
    expect(either).toMatchObject({ value: { kind: 'or', right: { kind: 'and' } } });
  });

  test.each([
    '',
    'userName',
    'userName eq',
    'userName eq bjensen',
    'userName eq constructor',
    'userName eq "x" and',
    'userName eq "x" "y"',
    'userName like "x"',
    'userName eq "x',
    'userName eq "x")',
    '(userName eq "x"',
    'emails[type eq "work"',
    'a.b.c eq "x"',
    'a eq "\\x"',
    "userName eq 'x'",
    'userName eq "x"; DROP TABLE users',
    `${'('.repeat(11)}a pr${')'.repeat(11)}`,
    Array(32).fill('a pr').join(' or '),
    `a eq "${'x'.repeat(2_000)}"`,
  ])('refuses %s', (text) => {
    expect(parseFilter(text)).toMatchObject({ ok: false, error: { scimType: 'invalidFilter' } });
  });

  test('no text makes the reader throw', () => {
    const piece = fc.constantFrom(
      '(',
      ')',
      '[',
      ']',
      'a',
      ' eq ',
      '"x"',
      ' and ',
      ' or ',
      'not ',
      '.',
      ' pr',
      '1',
      '"',
      '\\',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(piece).map((pieces) => pieces.join('')),
        ),
        (text) => {
          expect([true, false]).toContain(parseFilter(text).ok);
          expect([true, false]).toContain(parsePatchPath(text).ok);
        },
      ),
    );
  });
});

function each<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
const removeMember = (index: number) => ({ op: 'remove', path: `members[value eq "usr_${index}"]` });

describe('one request has a limited effort', () => {
  test('a filter has ten conditions at most', () => {
    const read = [10, 11].map((count) => parseFilter(each(count, () => 'emails.value co "a"').join(' or ')));
    expect(read.map((filter) => filter.ok)).toEqual([true, false]);
  });

  const MANY = { displayName: 'x', members: Array.from({ length: 5_000 }, (_, index) => ({ value: `usr_${index}` })) };
  test('a hundred operations change a group of as many members as may be', () => {
    const patched = patch(GROUP_KIND, MANY, ...each(100, removeMember));
    expect(parseGroup(patched)).toMatchObject({ ok: true, value: { members: { length: 4_900 } } });
  });

  test('as many operations as may be change a group of 500 members', () => {
    const some = { ...MANY, members: MANY.members.slice(0, 500) };
    const patched = patch(GROUP_KIND, some, ...each(1_000, removeMember));
    expect(parseGroup(patched)).toMatchObject({ ok: true, value: { members: { length: 0 } } });
  });

  test('a refusal says what to send instead', () => {
    const parsed = parsePatch({ schemas: [PATCH_SCHEMA], Operations: each(103, removeMember) });
    if (!parsed.ok) throw new Error(parsed.error.detail);
    const patched = applyPatch(MANY, parsed.value, GROUP_KIND.attributes);
    expect(patched).toMatchObject({ error: { detail: expect.stringContaining('send 100 operations at a time') } });
  });

  test.each([
    [
      'a list that is long before it is checked',
      [
        { op: 'add', path: 'members', value: each(20_000, (index) => ({ value: String(index) })) },
        ...each(90, () => ({ op: 'add', path: 'members', value: [] })),
      ],
    ],
    [
      'conditions of filters',
      each(11, () => ({ op: 'remove', path: `members[${each(10, () => 'value eq "-"').join(' or ')}]` })),
    ],
    [
      'names of a value without a path',
      [
        {
          op: 'replace',
          value: Object.fromEntries(each(200, (index) => [`members[value ne "${index}"]`, {}] as const)),
        },
      ],
    ],
  ])('refuses what costs more: %s', (_what, operations) => {
    expect(patch(GROUP_KIND, MANY, ...operations)).toBe('tooMany');
  });
});

describe('resources', () => {
  test('names have no case, null is no value, and the address that counts is the primary one', () => {
    const read = parseUser({
      USERNAME: 'anna',
      DisplayName: null,
      Emails: [{ Value: 'b@x.test' }, { value: 'A@x.test', primary: 'True' }],
    });
    expect(read).toMatchObject({ ok: true, value: { userName: 'anna', active: true } });
    expect(read.ok && addressOf(read.value)).toEqual({ address: 'a@x.test', domain: 'x.test' });
    expect(read.ok && displayNameOf(read.value)).toBe('anna');
  });

  test.each([
    [{ ...USER, userName: '' }, 'userName is empty'],
    [{ ...USER, userName: undefined }, 'userName is missing or of the wrong type'],
    [{ ...USER, userName: 'a\u202eb' }, 'userName contains a control character'],
    [{ ...USER, active: 'maybe' }, 'active is neither true nor false'],
    [{ ...USER, emails: 'x' }, expect.stringMatching(/^emails /)],
    [{ ...USER, emails: Array.from({ length: 11 }, () => ({ value: 'x' })) }, 'emails has more than 10 addresses'],
    [{ ...USER, displayName: 'x'.repeat(201) }, 'displayName is longer than 200 characters'],
  ])('refuses what is wrong, and names the field: %j', (body, detail) => {
    const read = parseUser(body);
    expect(read).toMatchObject({ ok: false, error: { detail } });
  });

  test('a group has a limit of members', () => {
    expect(parseGroup({ displayName: 'x', members: Array.from({ length: 5_001 }, () => ({ value: 'u' })) }).ok).toBe(
      false,
    );
    expect(parseGroup(GROUP).ok).toBe(true);
  });
});
