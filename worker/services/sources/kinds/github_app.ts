import { z } from 'zod';
import { parseJsonBytes } from '../../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../../shared/model/result.ts';
import { Secret } from '../../../../shared/model/secret.ts';
import { GITHUB_TOKEN_SECONDS } from '../../../../shared/wire/sources/kinds/github_app.ts';
import type { SourceOf } from '../../../../shared/wire/sources/source_table.ts';
import type { OutboundReply } from '../../../kernel/outbound.ts';
import { signJwt } from '../sign_jwt.ts';
import type { MintingSource, MintFailure, Minting } from '../source_port.ts';
import { keyProblem } from '../token_source.ts';

/** GitHub asks for an `iat` a minute ago, and for an `exp` of at most ten minutes. */
const BACKDATED_SECONDS = 60;
const JWT_SECONDS = 540;
const API_VERSION = '2022-11-28';

const issued = z.object({
  token: z.string().min(1),
  expires_at: z.string().refine((text) => !Number.isNaN(Date.parse(text))),
  permissions: z.record(z.string(), z.string()).optional(),
  repositories: z.array(z.object({ name: z.string() })).optional(),
});

/** A token of one installation of a GitHub App, narrowed to repositories and permissions. */
export const GITHUB_APP: MintingSource<'github_app'> = {
  describe(source) {
    const { installation_id: id, repositories } = source;
    const where = repositories === undefined ? 'every repository' : `the repositories ${repositories.join(', ')}`;
    const pairs = permissionsOf(source);
    return `${where} of installation ${id}${pairs.length === 0 ? '' : ` with ${pairs.join(', ')}`}`;
  },
  plan: (source) => ({
    identity: `the app ${source.app_id} in its installation ${source.installation_id}`,
    scope: [...(source.repositories ?? []).map((name) => `repository ${name}`), ...permissionsOf(source)],
    audience: null,
    providerUrl: tokensUrl(source),
  }),
  checkKey: (_source, key) => keyProblem(key, 'RS256'),
  async mint(minting) {
    const { source, outbound, nowMs } = minting;
    const jwt = await signAsApp(minting);
    if (!jwt.ok) return jwt;
    const { repositories, permissions } = source;
    const called = await outbound.call({
      method: 'POST',
      url: tokensUrl(source),
      headers: {
        authorization: `Bearer ${jwt.value.reveal()}`,
        accept: 'application/vnd.github+json',
        'content-type': 'application/json',
        'user-agent': 'svc',
        'x-github-api-version': API_VERSION,
      },
      body: new TextEncoder().encode(JSON.stringify({ repositories, permissions })),
    });
    if (!called.ok) return failed(called.error.message);
    const { host } = new URL(source.api_url);
    const reply = readReply(host, called.value);
    if (!reply.ok) return reply;
    const value = new Secret(reply.value.token);
    if (!isNarrowed(source, reply.value)) {
      const revoked = await revokeToken(minting, value);
      const left = revoked.ok ? 'which was revoked' : `which was discarded, but not revoked: ${revoked.error.message}`;
      return failed(`${host} issued a token for more than was asked, ${left}`);
    }
    // One that says more is not believed, because the two clocks may differ.
    const latest = nowMs + GITHUB_TOKEN_SECONDS * 1000;
    return ok({ value, expiresAtMs: Math.min(Date.parse(reply.value.expires_at), latest) });
  },
  revoke: (revoking) => revokeToken(revoking, revoking.minted.value),
};

/** A token may revoke itself. One that is not accepted any more has ended already. */
async function revokeToken(
  { source, outbound }: Pick<Minting<'github_app'>, 'source' | 'outbound'>,
  token: Secret,
): Promise<Result<void, MintFailure>> {
  const url = `${source.api_url.replace(/\/$/, '')}/installation/token`;
  const called = await outbound.call({
    method: 'DELETE',
    url,
    headers: {
      authorization: `Bearer ${token.reveal()}`,
      accept: 'application/vnd.github+json',
      'user-agent': 'svc',
      'x-github-api-version': API_VERSION,
    },
    body: null,
  });
  if (!called.ok) return failed(called.error.message);
  const { status } = called.value;
  return status === 204 || status === 401
    ? ok(undefined)
    : failed(`${new URL(url).host} answered with status ${status}`);
}

function permissionsOf({ permissions = {} }: SourceOf<'github_app'>): string[] {
  return Object.entries(permissions).map(([name, level]) => `${name}=${level}`);
}

function tokensUrl({ api_url: url, installation_id: id }: SourceOf<'github_app'>): string {
  return `${url.replace(/\/$/, '')}/app/installations/${id}/access_tokens`;
}

async function signAsApp({ source, key, nowMs }: Minting<'github_app'>): Promise<Result<Secret, MintFailure>> {
  const now = Math.floor(nowMs / 1000);
  const claims = { iss: source.app_id, iat: now - BACKDATED_SECONDS, exp: now + JWT_SECONDS };
  return signJwt(key, { algorithm: 'RS256', claims });
}

const WHY: Readonly<Record<number, string>> = {
  401: 'it does not accept the key for this app id, or the clock is wrong',
  403: 'the installation is suspended, or the app may not do this',
  404: 'there is no such installation of this app',
  422: 'the installation does not have these repositories or permissions',
};

function readReply(host: string, reply: OutboundReply): Result<z.infer<typeof issued>, MintFailure> {
  if (reply.status !== 201) {
    return failed(
      `${host} refused with status ${reply.status}${WHY[reply.status] === undefined ? '' : `: ${WHY[reply.status]}`}`,
    );
  }
  const { data } = issued.safeParse(parseJsonBytes(reply.body));
  return data === undefined ? failed(`the answer of ${host} is not that of an installation token`) : ok(data);
}

/** Whether the token is for no more than the source says. A server that ignores the narrowing must not widen a binding. */
function isNarrowed({ repositories, permissions }: SourceOf<'github_app'>, token: z.infer<typeof issued>): boolean {
  const names = new Set(repositories?.map((name) => name.toLowerCase()));
  const hasOnly = (token.repositories ?? []).every(({ name }) => names.has(name.toLowerCase()));
  if (repositories !== undefined && (token.repositories === undefined || !hasOnly)) return false;
  if (permissions === undefined) return true;
  if (token.permissions === undefined) return false;
  // Every installation may read metadata.
  const granted = Object.entries(token.permissions).filter(([name]) => name !== 'metadata');
  return granted.every(
    ([name, level]) => permissions[name] === level || (level === 'read' && permissions[name] !== undefined),
  );
}

function failed(message: string): Result<never, MintFailure> {
  return err({ reason: 'failed', message });
}
