import { claimsOf, objectOf, placeholderIdToken, readIdToken, textOf } from '../../shared/connect/id_token.ts';
import { isRefreshPlaceholder, PLACEHOLDER_SECONDS, refreshPlaceholder } from '../../shared/connect/token_request.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';

export const LOGIN_FORMAT_NAMES = ['claude', 'codex'] as const;

export type Json = Readonly<Record<string, unknown>>;

/** The login in an agent's file. */
export interface FoundLogin {
  readonly accessToken: Secret;
  readonly refreshToken: Secret;
  /** Milliseconds since the epoch; null if the file does not say. */
  readonly expiresAt: number | null;
  /** For a person: whose it is, and the plan. Not verified by anybody. */
  readonly who: string | null;
  readonly plan: string | null;
  /** Members of the file that stay as they are. */
  readonly others: readonly string[];
  /** Further credentials that are removed. */
  readonly removed: readonly string[];
  /** The login was granted the right to make lasting API keys. */
  readonly mayMakeKeys: boolean;
}

/** How an agent writes its login into its file. */
interface LoginFormat {
  /** The login, for the client that it must be of. The error is a predicate without a value. */
  read(file: Json, clientId: string): Result<FoundLogin, string>;
  /** The same file with placeholders in place of all tokens. */
  write(file: Json, placeholder: string, now: number): Json;
  /** The login alone, with placeholders, for the same file elsewhere: other members may be credentials. */
  copy(file: Json, placeholder: string, now: number): Json;
  /** Whether its login is one of placeholders. */
  hasPlaceholders(file: Json): boolean;
  /** The access token that it has, or the placeholder in its place. */
  access(file: Json): string | null;
  /** Members with a credential besides its login. */
  furtherCredentials(file: Json): readonly string[];
}

/** A format of each agent, from the files that the tried versions write. */
export const LOGIN_FORMATS: Readonly<Record<(typeof LOGIN_FORMAT_NAMES)[number], LoginFormat>> = {
  claude: {
    read: readClaude,
    write: writeClaude,
    copy: (...given) => pick(writeClaude(...given), CLAUDE_MEMBERS),
    hasPlaceholders: (file) => isRefreshPlaceholder(textOf(objectOf(file['claudeAiOauth'])['refreshToken']) ?? ''),
    access: (file) => textOf(objectOf(file['claudeAiOauth'])['accessToken']),
    furtherCredentials: () => [],
  },
  codex: {
    read: readCodex,
    write: writeCodex,
    copy: (...given) => pick(writeCodex(...given), CODEX_MEMBERS),
    hasPlaceholders: (file) => isRefreshPlaceholder(textOf(objectOf(file['tokens'])['refresh_token']) ?? ''),
    access: (file) => textOf(objectOf(file['tokens'])['access_token']),
    furtherCredentials,
  },
};

const OF_SVC = 'has placeholders of svc and no tokens';
const NO_LOGIN = 'holds no login with an access token and a refresh token';

function readClaude(file: Json, clientId: string): Result<FoundLogin, string> {
  const own = objectOf(file['claudeAiOauth']);
  const [accessToken, refreshToken] = [textOf(own['accessToken']), textOf(own['refreshToken'])];
  if (accessToken === null || refreshToken === null) return err(NO_LOGIN);
  if (isRefreshPlaceholder(refreshToken)) return err(OF_SVC);
  if ((textOf(own['clientId']) ?? clientId) !== clientId) return err('holds a login of another client');
  const expiresAt = own['expiresAt'];
  return ok({
    accessToken: new Secret(accessToken),
    refreshToken: new Secret(refreshToken),
    expiresAt: typeof expiresAt === 'number' ? expiresAt : null,
    who: null,
    plan: textOf(own['subscriptionType']),
    others: Object.keys(file).filter((name) => !CLAUDE_MEMBERS.has(name)),
    removed: [],
    mayMakeKeys: Array.isArray(own['scopes']) && own['scopes'].includes('org:create_api_key'),
  });
}

function writeClaude(file: Json, placeholder: string, now: number): Json {
  const own = objectOf(file['claudeAiOauth']);
  const end = now + PLACEHOLDER_SECONDS * 1000;
  const kept = Object.entries(own).filter(([name]) => CLAUDE_FACTS.has(name));
  const tokens = { accessToken: placeholder, refreshToken: refreshPlaceholder(placeholder), expiresAt: end };
  return { ...file, claudeAiOauth: { ...Object.fromEntries(kept), ...tokens } };
}

const CLAUDE_MEMBERS: ReadonlySet<string> = new Set(['claudeAiOauth']);

/** What Claude Code notes of a login besides its tokens. Anything else could be a credential and is left out. */
const CLAUDE_FACTS: ReadonlySet<string> = new Set([
  'scopes',
  'subscriptionType',
  'subscriptionTypeSource',
  'subscriptionTypeVerifiedAt',
  'rateLimitTier',
  'clientId',
  'accountUuid',
  'organizationUuid',
]);

function readCodex(file: Json): Result<FoundLogin, string> {
  const tokens = objectOf(file['tokens']);
  const [accessToken, refreshToken] = [textOf(tokens['access_token']), textOf(tokens['refresh_token'])];
  if (accessToken === null || refreshToken === null) return err(NO_LOGIN);
  if (isRefreshPlaceholder(refreshToken)) return err(OF_SVC);
  const { email, plan } = readIdToken(textOf(tokens['id_token']) ?? '');
  const end = claimsOf(accessToken)['exp'];
  return ok({
    accessToken: new Secret(accessToken),
    refreshToken: new Secret(refreshToken),
    expiresAt: typeof end === 'number' ? end * 1000 : null,
    who: email,
    plan,
    others: Object.keys(file).filter((name) => !CODEX_MEMBERS.has(name)),
    removed: furtherCredentials(file),
    mayMakeKeys: false,
  });
}

function furtherCredentials(file: Json): readonly string[] {
  return textOf(file['OPENAI_API_KEY']) === null ? [] : ['OPENAI_API_KEY'];
}

const CODEX_MEMBERS: ReadonlySet<string> = new Set(['auth_mode', 'OPENAI_API_KEY', 'tokens', 'last_refresh']);

function writeCodex(file: Json, placeholder: string, now: number): Json {
  const tokens = objectOf(file['tokens']);
  const account = readIdToken(textOf(tokens['id_token']) ?? '');
  const accountId = textOf(tokens['account_id']);
  return {
    ...file,
    OPENAI_API_KEY: null,
    tokens: {
      id_token: placeholderIdToken(account, Math.floor(now / 1000) + PLACEHOLDER_SECONDS),
      access_token: placeholder,
      refresh_token: refreshPlaceholder(placeholder),
      ...(accountId !== null && { account_id: accountId }),
    },
    last_refresh: new Date(now).toISOString(),
  };
}

function pick(file: Json, names: ReadonlySet<string>): Json {
  return Object.fromEntries(Object.entries(file).filter(([name]) => names.has(name)));
}
