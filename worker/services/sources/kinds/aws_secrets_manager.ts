import { awsKeyCheck } from '../aws_key_check.ts';
import { z } from 'zod';
import type { SourceOf } from '../../../../shared/wire/sources/source_table.ts';
import { awsDomain } from '../../../../shared/model/kms_key.ts';
import { signAwsCall } from '../../../kernel/sign_aws_call.ts';
import { type Advice, anotherSecret, callManager, keptPlan, keptValue, notAnAnswer } from '../kept_value.ts';
import type { MintingSource } from '../source_port.ts';

type Source = SourceOf<'aws_secrets_manager'>;

const CONTENT_TYPE = 'application/x-amz-json-1.1';
const answer = z.object({ ARN: z.string(), Name: z.string(), SecretString: z.string().optional() });
/** The code of an error may have the name of its namespace before it. */
const refusal = z.object({ __type: z.string() }).transform((body) => body['__type'].split('#').at(-1) ?? '');

/** A secret of AWS Secrets Manager, by `GetSecretValue` (API version 2017-10-17). */
export const AWS_SECRETS_MANAGER: MintingSource<'aws_secrets_manager'> = {
  describe: (source) => whereOf(source),
  plan: (source) => keptPlan(`the caller ${source.access_key_id}`, source.secret_id, urlOf(source)),
  checkKey: async (_source, key) => awsKeyCheck(key),
  async mint({ source, key, outbound, nowMs }) {
    const { access_key_id: accessKeyId, region, secret_id: id, version_stage: stage, field } = source;
    const url = new URL(urlOf(source));
    const asked = { SecretId: id, ...(stage !== undefined && { VersionStage: stage }) };
    const body = new TextEncoder().encode(JSON.stringify(asked));
    const headers = { 'x-amz-target': 'secretsmanager.GetSecretValue' };
    const call = { method: 'POST', url, contentType: CONTENT_TYPE, body, headers, accessKeyId, key, region, nowMs };
    const signed = await signAwsCall({ ...call, service: 'secretsmanager' });
    if (!signed.ok) {
      const message = 'the secret access key has a character that none has';
      return { ok: false, error: { reason: 'invalid_key', message } };
    }
    const called = await callManager({
      outbound,
      url: url.href,
      headers: { ...headers, ...signed.value, 'content-type': CONTENT_TYPE },
      body,
      why: WHY,
      codeOf: (reply) => refusal.safeParse(reply).data ?? null,
    });
    if (!called.ok) return called;
    const { data } = answer.safeParse(called.value);
    if (data === undefined) return notAnAnswer(url.href);
    if (!isAsked(id, data)) return anotherSecret(url.href);
    return keptValue(data.SecretString, { where: whereOf(source), nowMs, field });
  },
};

/** A name, an ARN, or an ARN without the six characters that AWS adds. */
function isAsked(id: string, { ARN: arn, Name: name }: z.output<typeof answer>): boolean {
  if (!id.startsWith('arn:')) return name === id;
  return arn === id || /^-[A-Za-z0-9]{6}$/.test(arn.startsWith(id) ? arn.slice(id.length) : '');
}

function urlOf({ secrets_manager_url: url, region }: Source): string {
  return url ?? `https://secretsmanager.${region}.${awsDomain(region)}/`;
}

function whereOf({ secret_id: id, region, version_stage: stage }: Source): string {
  return `the secret ${id} in ${region}${stage === undefined ? '' : `, ${stage}`}`;
}

const WHY: Advice = {
  AccessDeniedException: 'allow secretsmanager:GetSecretValue on this secret, and kms:Decrypt on its key',
  ResourceNotFoundException: 'there is no such secret or stage in this account and region',
  InvalidRequestException: 'the secret is marked for deletion, or has no value yet',
  InvalidParameterException: 'compare secret_id and version_stage',
  DecryptionFailure: 'its key of KMS cannot be used: enable the key, or allow kms:Decrypt',
  InternalServiceError: 'try again',
  ThrottlingException: 'try again later',
  UnrecognizedClientException: 'there is no such access key id, or it is inactive',
  InvalidSignatureException: 'the key is not that of the access key id, or the clock of the control plane is wrong',
};
