import { describe, expect, it } from 'vitest';
import { MountTable } from '../launch/mount_table.ts';
import type { FileView } from './file_view.ts';
import { planSandbox, type SandboxRequest } from './plan_sandbox.ts';
import { AGENT_SETTINGS, SYSTEM_FOLDERS, SYSTEM_SECRETS } from './visible_paths.ts';

type Kind = ReturnType<FileView['kindOf']>;

/** A machine's files: `folder`, `file`, `file:` and its text, `other`, or where a link leads. Other users cannot read `*.private`. */
function filesOf(entries: Readonly<Record<string, string>>): FileView {
  const at = (path: string): string | undefined => entries[path];
  const kindOf = (path: string): Kind => {
    const found = at(path);
    if (found === undefined) return null;
    if (found.startsWith('file:')) return 'file';
    return found === 'folder' || found === 'file' || found === 'other' ? found : 'link';
  };
  const realPath = (path: string): string | null => {
    const kind = kindOf(path);
    if (kind === null) return null;
    return kind === 'link' ? realPath(at(path) ?? '') : path;
  };
  const namesIn = (folder: string): readonly string[] =>
    Object.keys(entries).flatMap((path) => {
      const rest = path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : '';
      return rest === '' || rest.includes('/') ? [] : [rest];
    });
  const textOf = (path: string): string | null =>
    kindOf(path) === 'file' ? (at(path)?.slice('file:'.length) ?? '') : null;
  const privateIn: FileView['privateIn'] = ({ path }, { asked }) =>
    Object.keys(entries).filter(
      (each) =>
        each.startsWith(`${path}/`) &&
        each.endsWith('.private') &&
        !asked.some((named) => each === named || each.startsWith(`${named}/`)),
    );
  const foldersIn = (folder: string): readonly string[] =>
    namesIn(folder).filter((name) => kindOf(`${folder}/${name}`) === 'folder');
  return { kindOf, realPath, linkTarget: (path) => at(path) ?? '', namesIn, foldersIn, textOf, privateIn };
}

const HOME = '/home/ada';
const PROJECT = '/home/ada/shop';
const EMPTY_IF_ABSENT = ['.vscode', '.idea', ...Object.values(AGENT_SETTINGS).flat()];
const folders = (...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [`${PROJECT}/${name}`, 'folder']));
const MACHINE: Readonly<Record<string, string>> = {
  '/usr': 'folder',
  '/etc': 'folder',
  '/etc/shadow': 'file',
  '/etc/ssh': 'folder',
  '/bin': 'usr/bin',
  '/proc/sys': 'folder',
  '/': 'folder',
  '/home': 'folder',
  [HOME]: 'folder',
  [PROJECT]: 'folder',
  [`${HOME}/.ssh`]: 'folder',
  [`${HOME}/.svc`]: 'folder',
  [`${HOME}/.nvm`]: 'folder',
  [`${HOME}/.claude`]: 'folder',
  [`${HOME}/.claude.json`]: 'file',
};
const REQUEST: SandboxRequest = {
  workingDirectory: PROJECT,
  home: HOME,
  readable: [],
  writable: [],
  agent: null,
  programs: [],
  guarded: [{ path: `${HOME}/.svc`, name: 'the state directory of svc' }],
  mountTable: null,
  own: [{ source: '/opt/svc/init', target: '/run/svc/init' }],
};

function plan(change: Partial<SandboxRequest> = {}, more: Readonly<Record<string, string>> = {}) {
  const planned = planSandbox({ ...REQUEST, ...change }, filesOf({ ...MACHINE, ...more }));
  if (!planned.ok) throw new Error(planned.error.message);
  return planned.value;
}

function refusal(change: Partial<SandboxRequest>, more: Readonly<Record<string, string>> = {}): string {
  const planned = planSandbox({ ...REQUEST, ...change }, filesOf({ ...MACHINE, ...more }));
  return planned.ok ? 'planned' : planned.error.message;
}

/** How the last mount at a path is made. */
const modeOf = (args: readonly string[], path: string) => args[args.lastIndexOf(path) - 2];

/** Whether these arguments follow each other. */
function has(args: readonly string[], ...wanted: readonly string[]): boolean {
  return args.some((_, at) => wanted.every((each, more) => args[at + more] === each));
}

describe('a sandbox', () => {
  it('has namespaces and no capabilities of its own, and ends with its launcher', () => {
    const { args } = plan();
    const flags = ['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-net'];
    for (const flag of [...flags, '--unshare-cgroup-try', '--die-with-parent']) expect(args).toContain(flag);
    expect(has(args, '--cap-drop', 'ALL')).toBe(true);
    expect(args).not.toContain('--share-net');
    expect(args).not.toContain('--cap-add');
  });

  it('shows the system read-only, without its secrets', () => {
    const { args } = plan();
    expect(has(args, '--ro-bind', '/usr', '/usr')).toBe(true);
    expect(has(args, '--symlink', 'usr/bin', '/bin')).toBe(true);
    expect(has(args, '--ro-bind', '/dev/null', '/etc/shadow')).toBe(true);
    expect(has(args, '--tmpfs', '/etc/ssh')).toBe(true);
    expect(has(args, '--ro-bind', '/proc/sys', '/proc/sys')).toBe(true);
    expect(args.indexOf('/proc/sys')).toBeGreaterThan(args.indexOf('--proc'));
    expect(has(args, '--remount-ro', '/')).toBe(true);
  });

  it('hides the home, and shows the project in it writable', () => {
    const { args } = plan();
    expect(has(args, '--tmpfs', HOME)).toBe(true);
    expect(args.indexOf(HOME)).toBeLessThan(args.indexOf(PROJECT));
    expect(has(args, '--bind', PROJECT, PROJECT)).toBe(true);
    expect(args.filter((arg) => arg === '--bind')).toHaveLength(1);
    expect(args.join(' ')).not.toContain('.ssh');
    expect(args.join(' ')).not.toContain('.svc');
  });

  it('shows what is asked for, and folders of programs', () => {
    const { args } = plan(
      { readable: [`${HOME}/.claude.json`], writable: [`${HOME}/.claude`], programs: ['/srv/tools'] },
      {
        '/srv/tools': 'folder',
      },
    );
    expect(has(args, '--ro-bind', `${HOME}/.claude.json`, `${HOME}/.claude.json`)).toBe(true);
    expect(has(args, '--bind', `${HOME}/.claude`, `${HOME}/.claude`)).toBe(true);
    expect(has(args, '--ro-bind', `${HOME}/.nvm`, `${HOME}/.nvm`)).toBe(true);
    expect(has(args, '--ro-bind', '/srv/tools', '/srv/tools')).toBe(true);
  });

  it.each([
    ['the home', { programs: [HOME] }],
    ['a folder above it', { programs: ['/home'] }],
    ['the root', { programs: ['/'] }],
    ['a folder of keys', { programs: [`${HOME}/.ssh`] }],
    ['the state directory by a link', { programs: ['/srv/link'] }],
  ])('leaves out %s that PATH names', (_what, change) => {
    expect(plan(change, { '/srv/link': `${HOME}/.svc` }).args).toEqual(plan().args);
  });

  it('hides keys, the state directory and sockets of engines inside of what it shows', () => {
    const state = `${PROJECT}/state`;
    const guarded = [
      { path: state, name: 'the state directory of svc' },
      { path: `${PROJECT}/docker.sock`, name: 'a container engine' },
    ];
    const { args } = plan({ guarded }, { [state]: 'folder', [`${PROJECT}/docker.sock`]: 'other' });
    expect(has(args, '--tmpfs', state)).toBe(true);
    expect(has(args, '--ro-bind', '/dev/null', `${PROJECT}/docker.sock`)).toBe(true);
    expect(args.indexOf(state)).toBeGreaterThan(args.indexOf(PROJECT));
  });
});

it("hides the logins of other agents, and not the agent's own", () => {
  const logins = {
    [`${HOME}/.claude/.credentials.json`]: 'file',
    [`${HOME}/.codex`]: 'folder',
    [`${HOME}/.codex/auth.json`]: 'file',
  };
  const writable = [`${HOME}/.claude`, `${HOME}/.codex`];
  const { args } = plan({ agent: 'claude', writable }, logins);
  expect(has(args, '--ro-bind', '/dev/null', `${HOME}/.codex/auth.json`)).toBe(true);
  expect(args).not.toContain(`${HOME}/.claude/.credentials.json`);
});

describe('the working directory', () => {
  it.each([
    ['the root', '/', 'is a folder above your home'],
    ['the home', HOME, 'is your home'],
    ['a folder above it', '/home', 'is a folder above your home'],
    ['keys', `${HOME}/.ssh`, 'lies in keys and logins of other programs'],
    ['the state directory', `${HOME}/.svc`, 'lies in the state directory of svc'],
    ['the system', '/etc', 'is part of the system (/etc)'],
    ['a folder of the system', '/etc/ssh', 'lies in secrets of the system'],
    ['the folder of all temporary files', '/tmp', 'is part of the system (/tmp)'],
    ['what is absent', '/gone', 'does not exist'],
    ['the home by a link', '/srv/me', 'is your home'],
    ['processes', '/proc/1', 'is part of the system (/proc)'],
  ])('is not %s', (_what, workingDirectory, message) => {
    expect(refusal({ workingDirectory }, { '/srv/me': HOME, '/proc/1': 'folder', '/tmp': 'folder' })).toContain(
      message,
    );
  });

  it('may be below /var, where servers keep projects', () => {
    expect(refusal({ workingDirectory: '/var/www/shop' }, { '/var/www/shop': 'folder' })).toBe('planned');
  });

  it('may be below /usr, where images keep projects', () => {
    expect(refusal({ workingDirectory: '/usr/src/app' }, { '/usr/src/app': 'folder' })).toBe('planned');
  });
});

describe('a path that is asked for', () => {
  it.each([
    [HOME, 'is or contains your home'],
    [`${HOME}/.ssh`, 'lies in keys and logins'],
    ['/run/user', 'is part of /run'],
    ['/', 'is or contains your home'],
  ])('is not %s', (path, message) => {
    expect(refusal({ readable: [path] }, { '/run/user': 'folder' })).toContain(message);
    expect(refusal({ writable: [path] }, { '/run/user': 'folder' })).toContain(message);
  });

  it('is refused if it is a bind mount of the state directory', () => {
    const mountTable = new MountTable(
      ['1 0 8:1 / / rw', `2 1 8:1 ${HOME}/.svc /srv/copy rw`].map((line) => `${line} - ext4 /dev/sda rw`).join('\n'),
    );
    expect(refusal({ readable: ['/srv/copy'], mountTable }, { '/srv/copy': 'folder' })).toContain(
      'contains a bind mount of the state directory of svc',
    );
  });
});

describe('in the project', () => {
  it('git hooks and settings are read-only, and their folder cannot be moved away', () => {
    const { args, placeholders } = plan({}, { [`${PROJECT}/.git`]: 'folder', [`${PROJECT}/.git/config`]: 'file' });
    expect(has(args, '--bind', `${PROJECT}/.git`, `${PROJECT}/.git`)).toBe(true);
    expect(has(args, '--ro-bind', `${PROJECT}/.git/hooks`, `${PROJECT}/.git/hooks`)).toBe(true);
    expect(has(args, '--ro-bind', `${PROJECT}/.git/config`, `${PROJECT}/.git/config`)).toBe(true);
    expect(placeholders).toContain(`${PROJECT}/.git/hooks`);
    expect(args.lastIndexOf(`${PROJECT}/.git`)).toBeLessThan(args.indexOf(`${PROJECT}/.git/hooks`));
  });

  it('so are those of submodules, with every folder on the way', () => {
    const modules = `${PROJECT}/.git/modules`;
    const entries = {
      [`${PROJECT}/.git`]: 'folder',
      [modules]: 'folder',
      [`${modules}/libs`]: 'folder',
      [`${modules}/libs/foo`]: 'folder',
      [`${modules}/libs/foo/config`]: 'file',
    };
    const { args } = plan({}, entries);
    for (const path of [modules, `${modules}/libs`, `${modules}/libs/foo`])
      expect(has(args, '--bind', path, path)).toBe(true);
    expect(has(args, '--ro-bind', `${modules}/libs/foo/config`)).toBe(true);
    expect(has(args, '--ro-bind', `${modules}/libs/foo/hooks`)).toBe(true);
  });

  it('keeps what is shown read-only in a repository read-only', () => {
    const git = `${PROJECT}/.git`;
    const more = { [git]: 'folder', [`${git}/objects`]: 'folder', [`${git}/config`]: 'file' };
    const part = plan({ readable: [`${git}/objects`] }, more).args;
    expect([modeOf(part, git), modeOf(part, `${git}/objects`)]).toEqual(['--bind', '--ro-bind']);
    expect(part.lastIndexOf(git)).toBeLessThan(part.lastIndexOf(`${git}/objects`));
    const whole = plan({ readable: [git] }, more).args;
    expect([modeOf(whole, git), has(whole, '--bind', git, git)]).toEqual(['--ro-bind', false]);
  });

  it('all of .git is read-only if hooks are a link, which could be replaced', () => {
    const { args, warnings } = plan({}, { [`${PROJECT}/.git`]: 'folder', [`${PROJECT}/.git/hooks`]: '/srv/hooks' });
    expect(has(args, '--ro-bind', `${PROJECT}/.git`, `${PROJECT}/.git`)).toBe(true);
    expect(has(args, '--bind', `${PROJECT}/.git`)).toBe(false);
    expect(warnings.join()).toContain('hooks is a link');
  });

  it('everything that is mounted is looked at again in the sandbox', () => {
    const { mounted } = plan({}, { [`${PROJECT}/.husky`]: 'folder' });
    expect(mounted).toEqual([
      PROJECT,
      `${HOME}/.nvm`,
      ...['.husky', ...EMPTY_IF_ABSENT].map((name) => `${PROJECT}/${name}`),
    ]);
  });

  it("files that editors run are read-only, and an absent one's folder is empty", () => {
    const { args, placeholders } = plan(
      {},
      {
        [`${PROJECT}/.envrc`]: 'file',
        [`${PROJECT}/.vscode`]: 'folder',
        [`${PROJECT}/.vscode/settings.json`]: 'file',
      },
    );
    for (const name of ['.envrc', '.vscode', '.idea']) expect(has(args, '--ro-bind', `${PROJECT}/${name}`)).toBe(true);
    const absent = EMPTY_IF_ABSENT.filter((name) => name !== '.vscode');
    expect(placeholders).toEqual(absent.map((name) => `${PROJECT}/${name}`));
    expect(args.join(' ')).not.toContain('.husky');
  });

  it('an empty folder is held, because another sandbox may have made it and may end', () => {
    const held = '.svc-7-100-0123456789abcdef';
    const { placeholders } = plan(
      {},
      {
        [`${PROJECT}/.vscode`]: 'folder',
        [`${PROJECT}/.idea`]: 'folder',
        [`${PROJECT}/.idea/${held}`]: 'folder',
        [`${PROJECT}/.git`]: 'folder',
        [`${PROJECT}/.git/hooks`]: 'folder',
        [`${PROJECT}/.git/hooks/${held}`]: 'folder',
      },
    );
    const expected = [...EMPTY_IF_ABSENT, '.git/hooks'].map((name) => `${PROJECT}/${name}`);
    expect(placeholders.toSorted()).toEqual(expected.toSorted());
  });

  it("settings of other agents are read-only, which may name programs to run, and the agent's own are not", () => {
    const own = { [`${PROJECT}/.claude`]: 'folder', [`${PROJECT}/.claude/settings.json`]: 'file' };
    const files = { ...own, [`${PROJECT}/opencode.json`]: 'file', [`${PROJECT}/.mcp.json`]: 'file' };
    const codex = plan({ agent: 'codex' }, files);
    for (const name of ['.claude', '.mcp.json', 'opencode.json'])
      expect(modeOf(codex.args, `${PROJECT}/${name}`)).toBe('--ro-bind');
    expect(codex.placeholders).not.toContain(`${PROJECT}/.codex`);
    expect(codex.placeholders).toContain(`${PROJECT}/.cursor`);
    const claude = plan({ agent: 'claude' }, files).args;
    for (const name of ['.claude', '.mcp.json']) expect(claude).not.toContain(`${PROJECT}/${name}`);
  });

  it('what a person names as writable is', () => {
    const { args, placeholders } = plan(
      { writable: [`${PROJECT}/.claude`] },
      { [`${PROJECT}/.claude`]: 'folder', [`${PROJECT}/.claude/settings.json`]: 'file' },
    );
    expect(modeOf(args, `${PROJECT}/.claude`)).toBe('--bind');
    expect(placeholders).not.toContain(`${PROJECT}/.claude`);
  });

  it('what runs at the next login cannot be made in a home folder that is writable', () => {
    const { args, placeholders } = plan({ writable: [`${HOME}/.config`] }, { [`${HOME}/.config`]: 'folder' });
    for (const name of ['autostart', 'systemd']) {
      expect(placeholders).toContain(`${HOME}/.config/${name}`);
      expect(modeOf(args, `${HOME}/.config/${name}`)).toBe('--ro-bind');
    }
    expect(plan().placeholders.join()).not.toContain('.config');
  });

  it('repositories below it are protected too, and nothing but folders of hooks is made in them', () => {
    const entries = {
      ...folders('team', 'team/app', 'team/app/.git', 'team/app/.git/hooks', 'team/app/.vscode', 'other/.git'),
      ...folders('other', 'node_modules', 'node_modules/x', 'node_modules/x/.git', 'a', 'a/b', 'a/b/c', 'a/b/c/d'),
      ...folders('a/b/c/d/.git', 'team/app/vendor', 'team/app/vendor/.git'),
      [`${PROJECT}/team/app/.git/config`]: 'file',
      [`${PROJECT}/team/app/.git/hooks/pre-commit`]: 'file',
      [`${PROJECT}/team/app/.vscode/tasks.json`]: 'file',
    };
    const { args, placeholders } = plan({}, entries);
    for (const name of ['.git/hooks', '.git/config', '.vscode'])
      expect(modeOf(args, `${PROJECT}/team/app/${name}`)).toBe('--ro-bind');
    expect(modeOf(args, `${PROJECT}/team/app/.git`)).toBe('--bind');
    // None of them can be renamed, with another one put in its place.
    const onTheWay = ['team', 'team/app', 'team/app/.git', 'other', 'other/.git'].map((name) => `${PROJECT}/${name}`);
    for (const path of onTheWay) expect(has(args, '--bind', path, path)).toBe(true);
    expect(args.indexOf(`${PROJECT}/team/app`)).toBeLessThan(args.indexOf(`${PROJECT}/team/app/.git`));
    const made = ['other/.git/hooks', ...EMPTY_IF_ABSENT].map((name) => `${PROJECT}/${name}`);
    expect(placeholders.toSorted()).toEqual(made.toSorted());
    for (const name of ['node_modules/x', 'a/b/c/d', 'team/app/vendor'])
      expect(args).not.toContain(`${PROJECT}/${name}/.git`);
  });

  it('folders of hooks and files that the settings of git name are read-only', () => {
    const config =
      '[core] hooksPath = tools/hooks ; ours\n[include]\n\tpath = "../shared.gitconfig"\n[include]\n\tpath = ~/shop/own.gitconfig\n';
    const named = {
      ...folders('.git', 'tools', 'tools/hooks', 'more', 'more/hooks'),
      [`${PROJECT}/.git/config`]: `file:${config}`,
      [`${PROJECT}/shared.gitconfig`]: 'file:[core]\n  hookspath=more/hooks # others\n[include]\npath = gone',
      [`${PROJECT}/tools/hooks/pre-commit`]: 'file',
      [`${PROJECT}/own.gitconfig`]: 'file',
    };
    const { args } = plan({}, named);
    for (const name of ['tools/hooks', 'more/hooks', 'shared.gitconfig', 'own.gitconfig'])
      expect(modeOf(args, `${PROJECT}/${name}`)).toBe('--ro-bind');
    for (const name of ['tools', 'more']) expect(modeOf(args, `${PROJECT}/${name}`)).toBe('--bind');
    expect(plan({}, named).warnings.join()).toContain(`includes ${PROJECT}/gone, which could be made`);
    const isNotMade = Object.entries(named).filter(([path]) => !path.includes('tools/hooks'));
    expect(plan({}, Object.fromEntries(isNotMade)).placeholders).toContain(`${PROJECT}/tools/hooks`);
  });

  it('names what is covered: what is read-only, and what is hidden', () => {
    const { covered } = plan({}, { [`${PROJECT}/.envrc`]: 'file' });
    expect(covered).toContain(`${PROJECT}/.envrc`);
    expect(covered).toContain('/etc/shadow');
  });

  it('a worktree has its .git file read-only', () => {
    expect(has(plan({}, { [`${PROJECT}/.git`]: 'file' }).args, '--ro-bind', `${PROJECT}/.git`)).toBe(true);
  });
});

describe('a worktree', () => {
  const GIT = '/home/ada/main/.git';
  const OWN = `${GIT}/worktrees/shop`;
  const WORKTREE = {
    [`${PROJECT}/.git`]: `file:gitdir: ${OWN}\n`,
    [GIT]: 'folder',
    [`${GIT}/HEAD`]: 'file',
    [`${GIT}/objects`]: 'folder',
    [`${GIT}/config`]: 'file',
    [`${GIT}/hooks`]: 'folder',
    [`${GIT}/worktrees`]: 'folder',
    [OWN]: 'folder',
    [`${OWN}/commondir`]: 'file:../..\n',
    [`${OWN}/gitdir`]: 'file',
  };

  it('names the repository that is not shown, and what to type', () => {
    const { args, warnings } = plan({}, WORKTREE);
    expect(warnings).toEqual([expect.stringContaining(`to use git, add --sandbox-write ${GIT}`)]);
    expect(args).not.toContain(GIT);
  });

  it('has a repository whose hooks and settings are read-only, as those of the project are', () => {
    const { args, warnings } = plan({ writable: [GIT] }, WORKTREE);
    expect(warnings).toEqual([]);
    for (const path of [GIT, `${GIT}/worktrees`, OWN]) expect(has(args, '--bind', path, path)).toBe(true);
    for (const path of [`${GIT}/config`, `${GIT}/hooks`, `${OWN}/commondir`, `${OWN}/gitdir`]) {
      expect(has(args, '--ro-bind', path, path)).toBe(true);
      expect(args.lastIndexOf(path)).toBeGreaterThan(args.lastIndexOf(OWN));
    }
  });

  it('is warned of if the repository is shown read-only', () => {
    expect(plan({ readable: [GIT] }, WORKTREE).warnings).toHaveLength(1);
  });

  it.each([
    ['no repository', { [`${GIT}/objects`]: 'gone' }, 0],
    ['nothing', { [`${PROJECT}/.git`]: 'file:gitdir: /gone' }, 0],
    ['a submodule, by a path from the project', { [`${PROJECT}/.git`]: `file:gitdir: ../main/.git` }, 1],
  ])('may lead to %s', (_what, change, count) => {
    const entries = Object.entries({ ...WORKTREE, ...change }).filter(([, kind]) => kind !== 'gone');
    expect(plan({}, Object.fromEntries(entries)).warnings).toHaveLength(count);
  });

  it('protects another project that is writable in the same way', () => {
    const { args } = plan({ writable: ['/home/ada/main'] }, { ...WORKTREE, '/home/ada/main': 'folder' });
    for (const path of [`${GIT}/config`, `${GIT}/hooks`, '/home/ada/main/.vscode']) {
      expect(has(args, '--ro-bind', path, path)).toBe(true);
    }
  });
});

describe('what other users of the machine cannot read', () => {
  const KEYS = { '/opt': 'folder', '/etc/a.private': 'folder', '/opt/b.private': 'file', '/etc/ssh/c.private': 'file' };

  it('is covered in the folders of the system', () => {
    const { args, covered } = plan({}, KEYS);
    expect(has(args, '--tmpfs', '/etc/a.private')).toBe(true);
    expect(has(args, '--ro-bind', '/dev/null', '/opt/b.private')).toBe(true);
    // With the folder that it is in.
    expect(args).not.toContain('/etc/ssh/c.private');
    expect(covered).toContain('/opt/b.private');
  });

  it('is shown in the project, wherever that is', () => {
    const shop = { '/opt/shop': 'folder', '/opt/shop/env.private': 'file' };
    expect(plan({ workingDirectory: '/opt/shop' }, shop).args).not.toContain('/opt/shop/env.private');
  });

  it.each(['readable', 'writable'])('is shown if a person names it: %s', (how) => {
    const { args } = plan({ [how]: ['/opt/b.private'] }, KEYS);
    expect(has(args, '/dev/null', '/opt/b.private')).toBe(false);
    expect(has(args, how === 'writable' ? '--bind' : '--ro-bind', '/opt/b.private', '/opt/b.private')).toBe(true);
  });
});

it('names no secret of the system outside of a folder that is shown', () => {
  for (const path of SYSTEM_SECRETS) expect(SYSTEM_FOLDERS.some((folder) => path.startsWith(`${folder}/`))).toBe(true);
});
