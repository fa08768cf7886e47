import { err, ok, type Result } from '../../shared/model/result.ts';
import { type EnrolInput, enrolReply } from '../../shared/wire/sidecars.ts';
import { errorInBody, fromHttpFailure } from './channel.ts';
import { channelFailure, type ChannelFailure } from './channel_failure.ts';
import type { HttpClient, HttpReply } from '../../machine/http_call.ts';
import { generateSidecarKeys, type IdentityRecord, type SidecarKeys } from '../../machine/sidecar_identity.ts';
import { parseJson } from '../../shared/model/json.ts';

interface Enrolment {
  readonly http: HttpClient;
  /** The bearer token of the user who will own this sidecar; in local mode the local key. */
  readonly userToken: string;
  /** The name that the user sees in the list of sidecars. */
  readonly name: string;
}

const TIMEOUT_MS = 10_000;

/** Enrols a new sidecar: creates its keys, registers the public keys, and pins the control plane's key. */
export async function enrol(enrolment: Enrolment): Promise<Result<IdentityRecord, ChannelFailure>> {
  const keys = await generateSidecarKeys();
  const reply = await enrolment.http.call({
    method: 'POST',
    target: '/v1/sidecars',
    headers: { authorization: `Bearer ${enrolment.userToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(publicHalves(enrolment.name, keys)),
    timeoutMs: TIMEOUT_MS,
  });
  if (!reply.ok) return err(fromHttpFailure(reply.error));
  return reply.value.status === 201 ? recordOf(reply.value, keys) : err(errorOfReply(reply.value));
}

function publicHalves(name: string, keys: SidecarKeys): EnrolInput {
  const { signing, receiving } = keys;
  return {
    name,
    signing_key: { kty: 'OKP', crv: 'Ed25519', x: signing.x },
    receiving_key: { kty: 'OKP', crv: 'X25519', x: receiving.x },
  };
}

function recordOf(reply: HttpReply, keys: SidecarKeys): Result<IdentityRecord, ChannelFailure> {
  const parsed = enrolReply.safeParse(parseJson(reply.body));
  if (!parsed.success) {
    return err(channelFailure('invalid_reply', "The reply to the enrolment is not a control plane's."));
  }
  return ok({ version: 1, ...parsed.data, signing_key: keys.signing, receiving_key: keys.receiving });
}

function errorOfReply(reply: HttpReply): ChannelFailure {
  const { status } = reply;
  const error = errorInBody(reply.body);
  if (error === null) return channelFailure('unavailable', `The enrolment was answered with ${status}.`, { status });
  const fix =
    status === 401 ? ' The control plane does not accept the key in local.key: start both on the same home.' : '';
  return channelFailure('refused', `The enrolment was refused (${error.code}): ${error.message}.${fix}`, {
    status,
    code: error.code,
  });
}
