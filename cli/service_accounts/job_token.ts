import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { errorCode } from '../../shared/model/error_code.ts';
import { isLoopbackHostname } from '../../shared/model/loopback_hostname.ts';
import { MAX_JOIN_TOKEN_CHARACTERS } from '../../shared/wire/service_accounts.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { httpClient } from '../terminal/http_client.ts';

/** Where the OpenID Connect token of a job comes from. */
export type TokenSource =
  | { readonly kind: 'github' }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'file'; readonly path: string };

/** The variables by which a job of GitHub Actions requests tokens. */
const REQUEST_URL = 'ACTIONS_ID_TOKEN_REQUEST_URL';
const REQUEST_TOKEN = 'ACTIONS_ID_TOKEN_REQUEST_TOKEN';

type TokenContext = Pick<CliContext, 'env' | 'fetch' | 'workingDirectory'>;

/**
 * The job's token for this audience. Throws `CliError` that says what is missing and how to fix it; no message quotes a part of
 * a token.
 */
export async function readJobToken(context: TokenContext, source: TokenSource, audience: string): Promise<string> {
  if (source.kind === 'github') return requestFromGithub(context, audience);
  if (source.kind === 'file') return readFromFile(resolve(context.workingDirectory, source.path), audience);
  const { name } = source;
  const fixes = [
    `In GitLab CI/CD, give the job the token:  id_tokens: { ${name}: { aud: "${audience}" } }`,
    'In GitHub Actions, use --token-from-oidc.',
  ];
  return requireToken(context.env[name], { from: `the variable ${name}`, fixes });
}

/** The environment without what a job can request tokens with: a command that has it could join by itself, past its sidecar. */
export function withoutJobToken(env: CliContext['env'], source: TokenSource): CliContext['env'] {
  const hidden = new Set([REQUEST_URL, REQUEST_TOKEN, ...(source.kind === 'variable' ? [source.name] : [])]);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !hidden.has(name)));
}

const githubReply = z.object({ value: z.string() });

async function requestFromGithub({ env, fetch }: TokenContext, audience: string): Promise<string> {
  const address = env[REQUEST_URL];
  const token = env[REQUEST_TOKEN];
  if (!address || !token) throw noGithubToken(env, address ? REQUEST_TOKEN : REQUEST_URL);
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopbackHostname(url.hostname)))) {
    throw new CliError(
      EXIT.notStarted,
      `${REQUEST_URL} is not an https URL: the job's request token is not sent there`,
    );
  }
  const client = httpClient({
    origin: url.origin,
    token,
    name: 'the token service of GitHub Actions',
    fetch,
    startFix: RETRY,
  });
  const { value } = await client.call('GET', url.pathname + url.search, githubReply, { query: { audience } });
  return requireToken(value, { from: 'the reply of GitHub Actions', fixes: [RETRY] });
}

const RETRY = 'Run the job again.';

function noGithubToken(env: CliContext['env'], missing: string): CliError {
  const elsewhere = [
    'In GitLab CI/CD: --token-variable NAME, of a token of id_tokens.',
    'In Kubernetes and elsewhere: --token-file FILE.',
  ];
  if (env['GITHUB_ACTIONS'] !== 'true') {
    return new CliError(EXIT.notStarted, `this is no job of GitHub Actions: ${missing} is not set`, elsewhere);
  }
  return new CliError(EXIT.notStarted, `this job may not request a token: ${missing} is not set`, [
    'Give the job the permission:  permissions: { id-token: write, contents: read }',
    'GitHub gives it to no workflow that a pull request from a fork starts.',
  ]);
}

function readFromFile(path: string, audience: string): string {
  const fixes = [
    `In Kubernetes, mount a projected token:  serviceAccountToken: { path: token, audience: "${audience}" }`,
    'Name its file with --token-file FILE.',
  ];
  let text: string;
  try {
    // A pipe would be waited for, and a device read without an end.
    if (!statSync(path).isFile()) throw new CliError(EXIT.notStarted, `${path} is not a file`, fixes);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(EXIT.notStarted, `${path} cannot be read (${errorCode(error) || 'unknown reason'})`, fixes);
  }
  return requireToken(text, { from: path, fixes });
}

/** Three parts of base64url. */
const SIGNED_TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

function requireToken(
  text: string | undefined,
  { from, fixes }: { readonly from: string; readonly fixes: readonly string[] },
): string {
  const token = text?.trim() ?? '';
  if (token === '') throw new CliError(EXIT.notStarted, `${from} has no token`, fixes);
  if (token.length > MAX_JOIN_TOKEN_CHARACTERS || !SIGNED_TOKEN.test(token)) {
    throw new CliError(EXIT.notStarted, `${from} is not a signed OpenID Connect token (three parts with dots)`, fixes);
  }
  return token;
}
