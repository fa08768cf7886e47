import type { Mutation } from '../mutation.ts';

const PLAN = 'sandbox/bubblewrap/plan_sandbox.ts';
const OF_PLAN = 'sandbox/bubblewrap/plan_sandbox.test.ts';
const PROJECT = 'sandbox/bubblewrap/protect_project.ts';
const FILTER = 'sandbox/bubblewrap/seccomp_filter.ts';
const OF_FILTER = 'sandbox/bubblewrap/seccomp_filter.test.ts';
const FIND = 'sandbox/bubblewrap/find_bubblewrap.ts';
const SESSIONS = 'sidecar/session/sessions.ts';
const OF_LISTENERS = 'sidecar/reach/session_listeners.test.ts';

/** Checks of sandboxes without a container engine (decisions 0122 and 0123). */
export const SANDBOX_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Sandboxes: network',
    holds: "the token of a sandbox's session opens nothing at the sidecar's own port",
    file: SESSIONS,
    text: 'if (session === null || session.hostSandbox !== null) return false;',
    replacement: 'if (session === null) return false;',
    tests: [OF_LISTENERS],
  },
  {
    row: 'Sandboxes: what is visible',
    holds: 'the working directory is neither the home nor above it',
    file: PLAN,
    text: "if (project === '/' || isAtOrBelow(home, project)) {",
    replacement: "if (project === '/') {",
    tests: [OF_PLAN],
  },
  {
    row: 'Sandboxes: what is visible',
    holds: 'the working directory is not inside a guarded folder',
    file: PLAN,
    text: 'if (inside !== undefined) return problem(',
    replacement: "if (inside?.path === '') return problem(",
    tests: [OF_PLAN],
  },
  {
    row: 'Sandboxes: what is visible',
    holds: 'keys and the state directory are covered inside of what is shown',
    file: PLAN,
    text: "if (kind === 'folder') return ['--tmpfs', path];",
    replacement: "if (kind === 'folder') return [];",
    tests: [OF_PLAN],
  },
  {
    row: 'Sandboxes: what is visible',
    holds: 'no bind mount shows the state directory under another path',
    file: PLAN,
    text: 'if (exposed !== null) return err(exposed);',
    replacement: '',
    tests: [OF_PLAN],
  },
  {
    row: 'Sandboxes: what is visible',
    holds: "root cannot write the kernel's settings",
    file: PLAN,
    text: "return ['--proc', '/proc', ...readOnly, ",
    replacement: "return ['--proc', '/proc', ...readOnly.slice(0, 0), ",
    tests: [OF_PLAN],
  },
  {
    row: 'Sandboxes: what is visible',
    holds: 'git hooks are read-only even if there are none',
    file: PROJECT,
    text: "return name === 'hooks' ? { ...NOTHING, readOnly: [path], placeholders: [path] } : NOTHING;",
    replacement: 'return NOTHING;',
    tests: [OF_PLAN],
  },
  {
    row: 'Sandboxes: what is visible',
    holds: '.git cannot be moved away with its hooks',
    file: PROJECT,
    text: 'return [{ ...NOTHING, writable: [folder] }, ...parts, ',
    replacement: 'return [NOTHING, ...parts, ',
    tests: [OF_PLAN],
  },
  {
    row: 'Sandboxes: what is visible',
    holds: 'a repository that is writable besides the project has its hooks and settings read-only',
    file: PROJECT,
    text: 'if (isRepository(path, files)) return protectGitFolder(path, files);',
    replacement: 'if (isRepository(path, files)) return NOTHING;',
    tests: [OF_PLAN],
  },
  {
    row: 'Sandboxes: what is visible',
    holds: 'where the repository of a worktree is, is read-only',
    file: PROJECT,
    text: "readOnly: entries.filter((entry) => files.kindOf(entry) === 'file') };",
    replacement: 'readOnly: [] };',
    tests: [OF_PLAN],
  },
  {
    row: 'Sandboxes: system calls',
    holds: 'calls by the numbers of another machine end the program',
    file: FILTER,
    text: '    returns(KILL_PROCESS),\n',
    replacement: '    returns(ALLOW),\n',
    tests: [OF_FILTER],
  },
  {
    row: 'Sandboxes: system calls',
    holds: 'calls of x32 are refused',
    file: FILTER,
    text: "...(machine === 'x64' ? [unlessAnyBitSkip(X32_BIT, 1), returns(ENOSYS)] : []),",
    replacement: '',
    tests: [OF_FILTER],
  },
  {
    row: 'Sandboxes: system calls',
    holds: 'no program types at a terminal',
    file: FILTER,
    text: '      unlessEqualSkip(TIOCSTI, 1),\n      returns(EPERM),\n',
    replacement: '',
    tests: [OF_FILTER],
  },
  {
    row: 'Sandboxes: system calls',
    holds: 'no program makes a namespace',
    file: FILTER,
    text: '      unlessAnyBitSkip(NEW_NAMESPACES, 1),\n      returns(EPERM),\n',
    replacement: '',
    tests: [OF_FILTER],
  },
  {
    row: 'Sandboxes: system calls',
    holds: "only families of sockets that end in the sandbox's own network",
    file: FILTER,
    text: '    returns(EAFNOSUPPORT),\n',
    replacement: '    returns(ALLOW),\n',
    tests: [OF_FILTER],
  },
  {
    row: 'Sandboxes: agents',
    holds: 'an agent sees no login of another agent',
    file: 'sandbox/bubblewrap/visible_paths.ts',
    text: '(name === agent ? [] : paths)',
    replacement: "(name === agent ? [] : paths.filter((path) => path === ''))",
    tests: [OF_PLAN],
  },
  {
    row: 'Sandboxes: agents',
    holds: 'with `always` no agent runs without its sandbox',
    file: 'cli/agents/agent_sandbox.ts',
    text: "const why = wish === 'always' ? null : whyNone(call, profile, { wanted, gateway });",
    replacement: 'const why = whyNone(call, profile, { wanted, gateway });',
    tests: ['cli/agents/agent_sandbox.test.ts'],
  },
  {
    row: 'Sandboxes: agents',
    holds: "a project's gateway takes the sandbox away in its own folder alone",
    file: 'cli/mcp/configured_gateway.ts',
    text: 'const here = own.filter(({ project }) => project === null || project === workingDirectory);',
    replacement: 'const here = own;',
    tests: ['cli/mcp/configured_gateway.test.ts'],
  },
  {
    row: 'Sandboxes: agents',
    holds: "a profile of your own shows only its agent's folders in the sandbox",
    file: 'cli/agents/agent_profiles.ts',
    text: 'if (shown !== undefined) {',
    replacement: "if (shown?.path === '') {",
    tests: ['cli/agents/agent_profiles.test.ts'],
  },
  {
    row: 'Sandboxes: start',
    holds: 'bubblewrap is never one of a relative folder of PATH',
    file: FIND,
    text: "filter((folder) => folder.startsWith('/'))",
    replacement: 'filter(() => true)',
    tests: ['sandbox/bubblewrap/find_bubblewrap.test.ts'],
  },
];
