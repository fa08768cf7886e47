import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { ROOT } from '../support/program.ts';
import { COPILOT_MODEL } from './replies.ts';

/** One agent with one of its logins, and a prompt that needs no person's answer. */
export interface Tried {
  readonly agent: string;
  readonly login: string;
  readonly npm: string;
  readonly prefix: string;
  readonly args: readonly string[];
  readonly over: 'SSE' | 'WebSocket';
}
export const PROMPT = 'say hello';
export const TRIED: readonly Tried[] = [
  {
    agent: 'claude',
    login: 'key',
    npm: '@anthropic-ai/claude-code',
    prefix: 'sk-ant-api03-',
    args: ['-p', PROMPT],
    over: 'SSE',
  },
  {
    agent: 'claude',
    login: 'subscription',
    npm: '@anthropic-ai/claude-code',
    prefix: 'sk-ant-oat01-',
    args: ['-p', PROMPT],
    over: 'SSE',
  },
  {
    agent: 'codex',
    login: 'key',
    npm: '@openai/codex',
    prefix: 'sk-proj-',
    args: ['exec', '--skip-git-repo-check', PROMPT],
    over: 'WebSocket',
  },
  {
    agent: 'gemini',
    login: 'key',
    npm: '@google/gemini-cli',
    prefix: 'AIza',
    args: ['--skip-trust', '-p', PROMPT],
    over: 'SSE',
  },
  {
    agent: 'opencode',
    login: 'openai',
    npm: 'opencode-ai',
    prefix: 'sk-proj-',
    args: ['run', '-m', 'openai/gpt-4o', PROMPT],
    over: 'SSE',
  },
  {
    agent: 'copilot',
    login: 'token',
    npm: '@github/copilot',
    prefix: 'github_pat_',
    args: ['--model', COPILOT_MODEL, '--allow-all-tools', '-p', PROMPT],
    over: 'SSE',
  },
  { agent: 'qwen', login: 'key', npm: '@qwen-code/qwen-code', prefix: 'sk-', args: ['-p', PROMPT], over: 'SSE' },
];

const profileFile = z.object({
  account: z.object({ title: z.string() }).optional(),
  container: z.object({ integrity: z.record(z.string(), z.string()) }),
  title: z.string(),
  tried: z.string().nullable(),
  logins: z.array(z.object({ name: z.string(), title: z.string(), secret: z.string(), variable: z.string() })),
});
export function profileOf(agent: string): z.output<typeof profileFile> {
  return profileFile.parse(parse(readFileSync(join(ROOT, 'catalog', 'agents', `${agent}.yaml`), 'utf8')));
}
export function loginOf({ agent, login }: Tried): z.output<typeof profileFile>['logins'][number] {
  const found = profileOf(agent).logins.find(({ name }) => name === login);
  if (found === undefined) throw new Error(`${agent} has no login ${login}`);
  return found;
}

/** Planted values that exist nowhere else, by the secret's path: agents share some. */
export function plantCredentials(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    TRIED.map((tried) => [loginOf(tried).secret, `${tried.prefix}${randomBytes(36).toString('base64url')}`]),
  );
}

/** An agent with one of its logins, as it is tried in a container. */
export interface TriedInContainer extends Pick<Tried, 'agent' | 'args' | 'over'> {
  readonly login: string;
  /** Null for its own login. */
  readonly tried: Tried | null;
}

/** What is tried in containers. `npm test` takes a sample: the own login that is written into the home. */
export function loginsInContainers(isFull: boolean): readonly TriedInContainer[] {
  const accounts = OWN_LOGINS.map((own): TriedInContainer => ({ ...own, login: 'account', tried: null }));
  if (!isFull) return accounts.filter(({ agent }) => agent === 'codex');
  return [...TRIED.map((tried): TriedInContainer => ({ ...tried, tried })), ...accounts];
}

/** The agents whose own login svc takes over. */
export const OWN_LOGINS: readonly Pick<Tried, 'agent' | 'npm' | 'args' | 'over'>[] = TRIED.filter(
  ({ agent, login }) => login === 'key' && profileOf(agent).account !== undefined,
);
