import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { homeSecrets, PROTECTED_IN_PROJECT } from '../bubblewrap/visible_paths.ts';
import type { VisibleFiles } from '../bubblewrap/plan_sandbox.ts';
import { profileText, type ProfileFacts } from './profile_text.ts';
import { type Decide, readProfile } from './testing/read_profile.ts';

const HOME = '/Users/ada';
const TEMPORARY = '/private/var/folders/xy/T/svc-sandbox-abc';

function visibleIn(project: string, more: Partial<VisibleFiles> = {}): VisibleFiles {
  const guarded = [...homeSecrets(HOME, null), `${HOME}/.svc`, '/Library/Keychains', '/private/etc/ssh'];
  return {
    project,
    home: HOME,
    guarded: guarded.map((path) => ({ path, name: 'a secret' })),
    shown: [{ path: project, mayWrite: true }],
    parts: {
      writable: [`${project}/.git`],
      readOnly: [`${project}/.git/hooks`, `${project}/.git/config`],
      placeholders: [],
      warnings: [],
    },
    ...more,
  };
}

function textOf(project: string, facts: Partial<ProfileFacts> = {}): string {
  const written = profileText({
    visible: visibleIn(project),
    temporary: TEMPORARY,
    readable: [],
    port: 50123,
    ...facts,
  });
  if (!written.ok) throw new Error(written.error.message);
  return written.value;
}
const decideIn = (project: string, facts?: Partial<ProfileFacts>): Decide => readProfile(textOf(project, facts));

/** Names that would end a string, a rule or an expression, or that another rule would match. */
const HOSTILE = [
  'plain',
  'with space',
  'quote"in',
  'end") (allow default) (allow file-read* (subpath "/',
  String.raw`back\slash`,
  String.raw`back\"quote`,
  'trailing\\',
  "single'quote",
  '; comment',
  '#"regex"',
  '(allow default)',
  'star*',
  'dot.dot',
  'a|b',
  '[brackets]',
  '^$',
  'ünïcode',
  'cafe\u0301',
  '日本語',
  '😀',
  '\u202Egnp',
];

describe('the profile of a sandbox on macOS', () => {
  it('allows the project and the temporary folder, and nothing else of the home', () => {
    const decide = decideIn(`${HOME}/shop`);
    expect(decide('file-read-data', `${HOME}/shop/package.json`)).toBe('allow');
    expect(decide('file-write-create', `${HOME}/shop/new`)).toBe('allow');
    expect(decide('file-write-data', `${TEMPORARY}/x`)).toBe('allow');
    expect(decide('file-read-data', '/usr/bin/true')).toBe('allow');
    for (const path of [
      `${HOME}/other/file`,
      HOME,
      `${HOME}/shop2/x`,
      `${HOME}/.zshrc`,
      '/private/var/folders/xy/T/else',
    ]) {
      expect([path, decide('file-read-data', path)]).toEqual([path, 'deny']);
      expect([path, decide('file-write-data', path)]).toEqual([path, 'deny']);
    }
    // Programs look at the folders on the way.
    expect(decide('file-read-metadata', HOME)).toBe('allow');
    for (const path of ['/usr/bin/x', '/Library/x', '/private/etc/hosts', '/', '/private/tmp/x']) {
      expect([path, decide('file-write-create', path)]).toEqual([path, 'deny']);
    }
  });

  it('hides every secret, also inside of something visible', () => {
    const decide = decideIn(`${HOME}/shop`, {
      visible: visibleIn(`${HOME}/shop`, {
        shown: [
          { path: `${HOME}/shop`, mayWrite: true },
          { path: `${HOME}/.config`, mayWrite: true },
        ],
        guarded: [
          { path: `${HOME}/.config/gh`, name: 'a login' },
          { path: '/Library/Keychains', name: 'keychains' },
          { path: `${HOME}/shop/"quoted"`, name: 'a secret' },
        ],
      }),
    });
    expect(decide('file-read-data', `${HOME}/.config/other`)).toBe('allow');
    for (const path of [
      `${HOME}/.config/gh/hosts.yml`,
      '/Library/Keychains/System.keychain',
      `${HOME}/shop/"quoted"/key`,
    ]) {
      for (const operation of ['file-read-data', 'file-read-metadata', 'file-write-data', 'file-write-unlink']) {
        expect([path, operation, decide(operation, path)]).toEqual([path, operation, 'deny']);
      }
    }
  });

  it('reaches the port of the session, and nothing else', () => {
    const text = textOf(`${HOME}/shop`);
    expect(text.match(/network[^\n]*/g)).toEqual(['network-outbound (remote ip "localhost:50123"))']);
    // The keychain, other programs, Apple events, and the service that fetches for others.
    expect(text).not.toMatch(
      /SecurityServer|securityd|launchservices|appleevent|trustd|mDNSResponder|iokit|job-creation/,
    );
    expect(text).toContain('(deny default)');
  });

  it.each([...PROTECTED_IN_PROJECT, '.git/hooks', '.git/config', '.git/config.worktree'])(
    'lets nothing write %s in the project, in any spelling, whether it is there or not',
    (name) => {
      for (const project of HOSTILE.map((each) => `${HOME}/${each}`)) {
        const decide = decideIn(project, {
          visible: visibleIn(project, {
            parts: { writable: [`${project}/.git`], readOnly: [], placeholders: [], warnings: [] },
          }),
        });
        for (const spelling of [name, name.toUpperCase()]) {
          for (const path of [`${project}/${spelling}`, `${project}/${spelling}/x`]) {
            expect([path, decide('file-write-create', path)]).toEqual([path, 'deny']);
          }
        }
        expect(decide('file-write-create', `${project}/src/${name}.txt`)).toBe('allow');
      }
    },
  );

  it('lets git make a repository in a folder without one, and in the temporary folder', () => {
    const none = { writable: [], readOnly: [], placeholders: [], warnings: [] };
    const decide = decideIn(`${HOME}/shop`, { visible: visibleIn(`${HOME}/shop`, { parts: none }) });
    for (const name of ['hooks', 'hooks/pre-commit.sample', 'config', 'HEAD']) {
      expect([name, decide('file-write-create', `${HOME}/shop/.git/${name}`)]).toEqual([name, 'allow']);
      const beside = decideIn(`${HOME}/shop`)('file-write-create', `${TEMPORARY}/.git/${name}`);
      expect([name, beside]).toEqual([name, 'allow']);
    }
    expect(decide('file-write-create', `${HOME}/shop/.vscode/tasks.json`)).toBe('deny');
  });

  it('keeps what holds protected files from being moved away', () => {
    const decide = decideIn(`${HOME}/shop`);
    expect(decide('file-write-unlink', `${HOME}/shop/.git`)).toBe('deny');
    expect(decide('file-write-unlink', `${HOME}/shop`)).toBe('deny');
    expect(decide('file-write-create', `${HOME}/shop/.git/objects/ab`)).toBe('allow');
    expect(decide('file-write-unlink', `${HOME}/shop/.git/index.lock`)).toBe('allow');
  });

  it.each(HOSTILE)('names a folder as it is called: %j', (name) => {
    const project = `${HOME}/${name}`;
    const decide = decideIn(project);
    expect(decide('file-write-create', `${project}/x`)).toBe('allow');
    expect(decide('file-read-data', `${HOME}/.ssh/id_ed25519`)).toBe('deny');
    expect(decide('file-read-data', `${HOME}/x`)).toBe('deny');
    expect(decide('mach-task-name', 'anything')).toBe('deny');
  });

  it.each(['line\nbreak', 'return\r', 'nul\0', 'escape\u001B[31m', 'delete\u007F', 'half\uD800'])(
    'refuses a name that no profile can have: %j',
    (name) => {
      const project = `${HOME}/${name}`;
      const refused = profileText({ visible: visibleIn(project), temporary: TEMPORARY, readable: [], port: 1 });
      expect(refused).toMatchObject({ ok: false, error: { message: expect.stringContaining('control character') } });
    },
  );

  it('opens nothing outside of the project, however that is called', () => {
    const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(names, (name) => {
        const project = `${HOME}/p/${name.replaceAll('/', '_')}`;
        const written = profileText({ visible: visibleIn(project), temporary: TEMPORARY, readable: [], port: 1 });
        if (!written.ok) return;
        const decide = readProfile(written.value);
        expect(decide('file-write-create', `${project}/x`)).toBe('allow');
        expect(decide('file-read-data', `${HOME}/secret`)).toBe('deny');
        expect(decide('file-write-create', `${project}/.vscode/tasks.json`)).toBe('deny');
        expect(decide('appleevent-send', 'x')).toBe('deny');
      }),
      { numRuns: 300 },
    );
  });
});
