import { z } from 'zod';
import { ok, type Result } from '../../../../shared/model/result.ts';
import { Secret } from '../../../../shared/model/secret.ts';
import type { SourceOf } from '../../../../shared/wire/sources/source_table.ts';
import {
  type Advice,
  anotherSecret,
  callManager,
  failed,
  keptPlan,
  keptValue,
  notAnAnswer,
  tokenProblem,
  withoutSlash,
} from '../kept_value.ts';
import type { Minted, MintFailure, Minting, MintingSource } from '../source_port.ts';

type Source = SourceOf<'infisical'>;

const loggedIn = z.object({ accessToken: z.string().regex(/^[\x21-\x7e]{1,8192}$/) });
const answer = z.object({
  secret: z.object({
    secretKey: z.string(),
    secretValue: z.string(),
    version: z.number().optional(),
    /** The value is then a text that says so. */
    secretValueHidden: z.boolean().default(false),
  }),
});

/** A secret of Infisical, by its API (secrets v4), as a machine identity with Universal Auth. Each read logs in, and ends its token. */
export const INFISICAL: MintingSource<'infisical'> = {
  describe: (source) => whereOf(source),
  plan: (source) => keptPlan(`the machine identity ${source.client_id}`, source.secret_name, urlOf(source)),
  checkKey: async (_source, key) => tokenProblem(key, 'client secret'),
  async mint(minting) {
    const token = await logIn(minting);
    if (!token.ok) return token;
    const read = await readSecret(minting, token.value);
    const { source, outbound } = minting;
    // A refusal changes nothing: the token ends by itself.
    const url = `${withoutSlash(source.infisical_url)}/api/v1/auth/token/revoke`;
    await callManager({ outbound, url, headers: {}, json: { accessToken: token.value.reveal() }, why: {} });
    return read;
  },
};

async function logIn({ source, key, outbound }: Minting<'infisical'>): Promise<Result<Secret, MintFailure>> {
  const url = `${withoutSlash(source.infisical_url)}/api/v1/auth/universal-auth/login`;
  const json = { clientId: source.client_id, clientSecret: key.reveal() };
  const called = await callManager({ outbound, url, headers: {}, json, why: LOGIN_WHY });
  if (!called.ok) return called;
  const { data } = loggedIn.safeParse(called.value);
  return data === undefined ? notAnAnswer(url) : ok(new Secret(data.accessToken));
}

async function readSecret(
  { source, outbound, nowMs }: Minting<'infisical'>,
  token: Secret,
): Promise<Result<Minted, MintFailure>> {
  const url = urlOf(source);
  const headers = { authorization: `Bearer ${token.reveal()}` };
  const called = await callManager({ outbound, url, headers, why: READ_WHY });
  if (!called.ok) return called;
  const { data } = answer.safeParse(called.value);
  if (data === undefined) return notAnAnswer(url);
  const { secretKey: name, secretValue: value, secretValueHidden: isHidden, version } = data.secret;
  const isVersion = source.version === undefined || source.version === version;
  if (name !== source.secret_name || !isVersion) return anotherSecret(url);
  if (isHidden) return failed(`${whereOf(source)} is hidden from this identity: allow it to read values`);
  return keptValue(value, { where: whereOf(source), nowMs });
}

function urlOf(source: Source): string {
  const {
    infisical_url: url,
    project_id: projectId,
    environment,
    folder: secretPath,
    secret_name: name,
    version,
  } = source;
  const asked = new URLSearchParams({ projectId, environment, secretPath, type: 'shared', viewSecretValue: 'true' });
  if (version !== undefined) asked.set('version', String(version));
  return `${withoutSlash(url)}/api/v4/secrets/${encodeURIComponent(name)}?${asked.toString()}`;
}

function whereOf({
  secret_name: name,
  project_id: id,
  environment,
  folder,
  infisical_url: url,
  version,
}: Source): string {
  const at = version === undefined ? '' : `, version ${version},`;
  return `${name}${at} in ${folder} of ${environment} in the project ${id} at ${new URL(url).host}`;
}

const LOGIN_WHY: Advice = {
  400: 'it does not accept the client id and the client secret: one is wrong, or the secret has ended or is used up',
  401: 'it does not accept the client id and the client secret: one is wrong, or the secret has ended or is used up',
  403: 'it does not let this identity log in from here: compare its trusted IPs',
  404: 'it has no Universal Auth: compare infisical_url',
  429: 'a quota is used up: try again later',
};
const READ_WHY: Advice = {
  400: 'it does not accept the request: compare project_id, environment and folder',
  401: 'the token of the login was not accepted: compare the trusted IPs of the identity',
  403: 'the identity may not read this secret: give it a role in the project',
  404: 'there is no such secret, or the server is older than secrets v4: compare secret_name, environment and folder',
  429: 'a quota is used up: try again later',
};
