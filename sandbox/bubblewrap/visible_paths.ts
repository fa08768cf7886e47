import type { SharedFolder } from './private_files.ts';

/** The system's own folders: visible, and read-only. Planning and the check of a working directory read this one list. */
export const SYSTEM_FOLDERS = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/etc',
  '/opt',
  '/nix/store',
  '/gnu/store',
] as const;

/**
 * Folders of the system that also hold what only some users of the machine may read: settings of services with their passwords, such
 * as the master key of a control plane in `/etc/svc`. What other users cannot read there is covered.
 */
export const PARTLY_PRIVATE: readonly SharedFolder[] = [
  { path: '/etc', levels: 16 },
  { path: '/opt', levels: 3 },
  { path: '/usr/local', levels: 3 },
];

/** Folders of the kernel and of running services, which are not visible or are made anew. */
export const REPLACED_FOLDERS = ['/proc', '/sys', '/dev', '/run', '/var/run', '/boot'] as const;

/** Folders of all users, which each sandbox has of its own. */
export const SHARED_FOLDERS = ['/tmp', '/var/tmp'] as const;

/**
 * The kernel's own settings. Root could write them in a sandbox too: the kernel asks for the owner, not for a capability. One names a
 * program that the kernel starts outside of every sandbox.
 */
export const KERNEL_SETTINGS = ['sys', 'sysrq-trigger', 'irq', 'bus', 'fs', 'acpi', 'scsi', 'driver', 'mtrr'].map(
  (name) => `/proc/${name}`,
);

/** Files and folders of the system that hold secrets, whoever may read them. */
export const SYSTEM_SECRETS = [
  '/etc/shadow',
  '/etc/shadow-',
  '/etc/gshadow',
  '/etc/gshadow-',
  '/etc/sudoers',
  '/etc/sudoers.d',
  '/etc/ssh',
  '/etc/ssl/private',
  '/etc/krb5.keytab',
  '/etc/letsencrypt',
  '/etc/docker',
  '/etc/kubernetes',
  '/etc/rancher',
  '/etc/wireguard',
  '/etc/openvpn',
  '/etc/ppp',
  '/etc/ipsec.secrets',
  '/etc/NetworkManager/system-connections',
  '/etc/wpa_supplicant',
] as const;

/** Below the home: keys, keyrings and logins of other programs. */
const HOME_SECRETS = [
  '.ssh',
  '.gnupg',
  '.pki',
  '.aws',
  '.azure',
  '.kube',
  '.docker',
  '.netrc',
  '.git-credentials',
  '.npmrc',
  '.yarnrc.yml',
  '.pypirc',
  '.pgpass',
  '.my.cnf',
  '.vault-token',
  '.password-store',
  '.terraform.d',
  '.cargo/credentials.toml',
  '.cargo/credentials',
  '.gem/credentials',
  '.m2/settings.xml',
  '.gradle/gradle.properties',
  '.config/gh',
  '.config/glab-cli',
  '.config/gcloud',
  '.config/git/credentials',
  '.config/hub',
  '.config/op',
  '.config/rclone',
  '.config/google-chrome',
  '.config/chromium',
  '.config/systemd',
  '.config/autostart',
  '.mozilla',
  '.thunderbird',
  '.local/share/keyrings',
  '.local/share/kwalletd',
  '.local/share/containers',
  '.bash_history',
  '.zsh_history',
  '.python_history',
] as const;

/** Below the home: what the desktop and the service manager run at the next login. */
const RUNS_AT_LOGIN = ['.config/autostart', '.config/systemd'] as const;

/**
 * Below the home: folders with programs of version managers and package managers, which programs of a project start. Shown
 * read-only; none of them holds a login.
 */
const PROGRAM_FOLDERS = [
  '.local/bin',
  '.local/lib',
  '.local/pipx',
  '.local/share/pipx',
  '.local/share/uv',
  '.local/share/mise',
  '.local/share/fnm',
  '.local/share/pnpm',
  '.local/share/claude',
  '.nvm',
  '.fnm',
  '.volta',
  '.asdf',
  '.pyenv',
  '.rbenv',
  '.rustup',
  '.sdkman',
  '.cargo/bin',
  '.bun/bin',
  '.deno/bin',
  '.npm-global',
  'go/bin',
] as const;

/** In a working directory: what runs as code outside of the sandbox when a person or an editor uses the folder. */
export const PROTECTED_IN_PROJECT = [
  '.vscode',
  '.idea',
  '.zed',
  '.fleet',
  '.vs',
  '.devcontainer',
  '.devcontainer.json',
  '.husky',
  '.githooks',
  '.envrc',
  '.mise.toml',
  'mise.toml',
  '.exrc',
  '.nvimrc',
  '.nvim.lua',
  '.vimrc',
  '.dir-locals.el',
] as const;

/** Of these an empty, read-only folder is there even if the project has none: an editor runs a new file in it without a question. */
export const PROTECTED_EVEN_IF_ABSENT: readonly string[] = ['.vscode', '.idea'];

/**
 * In a working directory: where an agent reads settings that name programs to run (hooks, plugins, MCP servers). An agent may write its
 * own, which take effect in its next sandbox, but not those of another, which may run without one. Each is an empty, read-only folder
 * if the project has none.
 */
export const AGENT_SETTINGS: Readonly<Record<string, readonly string[]>> = {
  claude: ['.claude'],
  codex: ['.codex'],
  gemini: ['.gemini'],
  qwen: ['.qwen'],
  opencode: ['.opencode'],
  cursor: ['.cursor'],
};

/** The same as files and folders that are read-only if they are there. */
export const AGENT_SETTINGS_IF_THERE: Readonly<Record<string, readonly string[]>> = {
  claude: ['.mcp.json'],
  opencode: ['opencode.json', 'opencode.jsonc'],
  copilot: ['.github/hooks'],
  kilo: ['.kilocode'],
  roo: ['.roo'],
  windsurf: ['.windsurf'],
};

/** Below the home: where the agents of the catalog keep a login of their own. */
export const AGENT_LOGINS: Readonly<Record<string, readonly string[]>> = {
  claude: ['.claude/.credentials.json'],
  codex: ['.codex/auth.json'],
  gemini: ['.gemini/oauth_creds.json'],
  copilot: ['.copilot/config.json'],
  qwen: ['.qwen/oauth_creds.json'],
  opencode: ['.local/share/opencode/auth.json'],
};

/** Secrets of the home, with the logins of all agents but this one. */
export function homeSecrets(home: string, agent: string | null): readonly string[] {
  const logins = Object.entries(AGENT_LOGINS).flatMap(([name, paths]) => (name === agent ? [] : paths));
  return [...HOME_SECRETS, ...logins].map((name) => `${home}/${name}`);
}

const IN_CONFIG = '.config/';

/** The secrets of `~/.config`, in the folder that is used instead. */
export function configSecrets(folder: string): readonly string[] {
  const names = HOME_SECRETS.filter((name) => name.startsWith(IN_CONFIG));
  return names.map((name) => `${folder}/${name.slice(IN_CONFIG.length)}`);
}

export function foldersRunAtLogin(home: string): readonly string[] {
  return RUNS_AT_LOGIN.map((name) => `${home}/${name}`);
}

export function programFolders(home: string): readonly string[] {
  return PROGRAM_FOLDERS.map((name) => `${home}/${name}`);
}
