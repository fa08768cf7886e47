import { COPILOT_MODEL } from '../../agents/replies.ts';

/** A coding agent as a client of the gateway. */
export interface DrivenClient {
  /** Its name in TRIED, and in `svc run`. */
  readonly agent: string;
  readonly login: string;
  /** Its name in `svc mcp export`. */
  readonly client: string;
  /** What it is started with: one prompt, without a person at its side. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A configuration that the person has before the gateway is added: its path in the home, and its text. */
  readonly configured?: readonly [path: string, text: string];
  /** Its own command that lists its MCP servers. */
  readonly list: readonly string[];
  /** What that command says about the gateway. */
  readonly listed: RegExp;
  /** Its own command that removes a server; null if it has none, and the file is edited. */
  readonly remove: readonly string[] | null;
  /** Whether its model is offered a tool that is added while it runs. */
  readonly noticesNew: boolean;
  /** Whether its model is still offered a tool that the gateway no longer lists. */
  readonly keepsRemoved: boolean;
  /** What the table says about it. */
  readonly differs: string;
}

const PROMPT = 'use the notes';

export const DRIVEN: readonly DrivenClient[] = [
  {
    agent: 'claude',
    login: 'key',
    client: 'claude-code',
    args: ['-p', PROMPT, '--allowedTools', 'mcp__svc'],
    env: { ENABLE_TOOL_SEARCH: 'false' },
    list: ['mcp', 'list'],
    listed: /svc: .*Connected/,
    remove: ['mcp', 'remove', '--scope', 'user', 'svc'],
    noticesNew: true,
    keepsRemoved: true,
    differs:
      'Does not wait for servers at its start. A tool that is denied or gone is offered until it is started again; a call is refused. `ENABLE_TOOL_SEARCH=false`: else its model searches tools first.',
  },
  {
    agent: 'codex',
    login: 'key',
    client: 'codex',
    args: [
      'exec',
      '-m',
      'gpt-4o',
      '-c',
      'mcp_servers.svc.required=true',
      '--skip-git-repo-check',
      '--dangerously-bypass-approvals-and-sandbox',
      PROMPT,
    ],
    list: ['mcp', 'list'],
    listed: /svc .*enabled/,
    remove: ['mcp', 'remove', 'svc'],
    noticesNew: false,
    keepsRemoved: true,
    differs:
      'Offers the tools of its start until it is started again; a call of one that was denied is refused. `mcp_servers.svc.required=true`: else its first request does not wait for the server.',
  },
  {
    agent: 'gemini',
    login: 'key',
    client: 'gemini-cli',
    args: ['--yolo', '-p', PROMPT],
    env: { GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    list: ['mcp', 'list'],
    listed: /svc: .*Connected/,
    remove: ['mcp', 'remove', '--scope', 'user', 'svc'],
    noticesNew: true,
    keepsRemoved: false,
    differs: 'Starts servers only in a trusted folder.',
  },
  {
    agent: 'opencode',
    login: 'openai',
    client: 'opencode',
    args: ['run', '-m', 'openai/gpt-4o', PROMPT],
    list: ['mcp', 'list'],
    listed: /svc .*connected/,
    remove: null,
    noticesNew: true,
    keepsRemoved: false,
    differs: 'Has no command that removes a server: edit the file.',
  },
  {
    agent: 'qwen',
    login: 'key',
    client: 'qwen-code',
    args: ['--yolo', '-p', PROMPT],
    configured: ['.qwen/settings.json', '{ "tools": { "toolSearch": { "enabled": false } } }'],
    list: ['mcp', 'list'],
    listed: /svc: .*Connected/,
    remove: ['mcp', 'remove', '--scope', 'user', 'svc'],
    noticesNew: false,
    keepsRemoved: true,
    differs:
      'Offers the tools of its start until it is started again; a call of one that was denied is refused. `tools.toolSearch.enabled: false`: else its model searches tools first.',
  },
  {
    agent: 'copilot',
    login: 'token',
    client: 'github-copilot-cli',
    args: ['--model', COPILOT_MODEL, '--allow-all-tools', '-p', PROMPT],
    list: ['mcp', 'list'],
    listed: /svc/,
    remove: ['mcp', 'remove', 'svc'],
    noticesNew: true,
    keepsRemoved: false,
    differs: 'Its own command lists the server without a start.',
  },
];
