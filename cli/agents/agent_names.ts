/**
 * The agents of `catalog/agents/`, with their titles. They stand here so that the command line knows its commands without
 * reading a file; a test compares them with the catalog.
 */
export const AGENT_TITLES = {
  aider: 'Aider',
  claude: 'Claude Code',
  codex: 'OpenAI Codex',
  copilot: 'GitHub Copilot CLI',
  gemini: 'Gemini CLI',
  goose: 'Goose',
  opencode: 'OpenCode',
  qwen: 'Qwen Code',
} as const;

/** The name of a profile: a command of `svc`, and a file's name. */
export const AGENT_NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;

/** The one program that `svc login` knows besides agents: GitHub's. */
export const GH = 'gh';

/** The word for an agent's own login, in `--login` and `--as`. */
export const ACCOUNT = 'account';
