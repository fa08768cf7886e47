import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { errorCode } from '../../../shared/model/error_code.ts';
import { parseJson } from '../../../shared/model/json.ts';
import type { KmsKey } from '../../../shared/model/kms_key.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { accessKeyIdText } from '../../../shared/wire/host_binding_fields.ts';
import { providerUrl } from '../../../shared/wire/connectors/connector_credentials.ts';
import { ProgramError } from '../program_error.ts';

const secret = z
  .string()
  .min(1)
  .max(16_384)
  .transform((text) => new Secret(text));

/** As `aws configure export-credentials` and each `credential_process` print it. */
const awsKeys = z.object({
  AccessKeyId: accessKeyIdText,
  SecretAccessKey: secret,
  SessionToken: secret.optional(),
});
export type AwsKeys = z.output<typeof awsKeys>;

/** The key file of a service account, as Google gives it. */
const googleKey = z.object({
  type: z.literal('service_account'),
  client_email: z.string().regex(/^[\x21-\x7e]{1,500}$/),
  private_key: secret,
  private_key_id: z
    .string()
    .regex(/^[\x21-\x7e]{1,500}$/)
    .optional(),
  token_uri: providerUrl,
});
export type GoogleKey = z.output<typeof googleKey>;

const FORMS: Readonly<Record<KmsKey['cloud'], string>> = {
  aws: 'JSON with AccessKeyId, SecretAccessKey and, for temporary ones, SessionToken, as "aws configure export-credentials" prints it',
  google: 'the JSON key of a service account, with client_email, private_key and token_uri',
};

export function readAwsKeys(file: string | undefined): AwsKeys {
  return read(awsKeys, 'aws', file);
}

export function readGoogleKey(file: string | undefined): GoogleKey {
  return read(googleKey, 'google', file);
}

function read<T>(schema: z.ZodType<T>, cloud: KmsKey['cloud'], file: string | undefined): T {
  if (file === undefined) {
    throw refusal(`is not set: name a file with what may use the key of the KMS (${FORMS[cloud]})`);
  }
  const parsed = schema.safeParse(parseJson(textOf(file)));
  if (parsed.success) return parsed.data;
  // The file's values are secret: only the names of its fields are told.
  const field = parsed.error.issues[0]?.path.join('.') ?? '';
  throw refusal(`: ${file} cannot be used${field === '' ? '' : `, because of ${field}`}: give ${FORMS[cloud]}`);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw refusal(`: ${file} cannot be read (${errorCode(error) || 'unknown'})`);
  }
}

function refusal(why: string): ProgramError {
  const space = why.startsWith(':') ? '' : ' ';
  return new ProgramError('vault_kms_unavailable', `SVC_KMS_CREDENTIALS_FILE${space}${why}`);
}
