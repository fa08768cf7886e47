import { z } from 'zod';
import { parseJson } from '../../model/json.ts';
import { providerUrl } from '../connectors/connector_credentials.ts';
import { accessKeyIdText } from '../host_binding_fields.ts';
import { DURATION_SECONDS, fewerSeconds, LIST } from './fields.ts';
import type { Narrowing } from './narrowing.ts';

export const AWS_REGION = {
  schema: z.string().regex(/^[a-z]{2,8}(?:-[a-z]{1,12}){1,3}-\d{1,2}$/, 'is not a region, such as eu-central-1'),
  label: 'Region',
  placeholder: 'eu-central-1',
};
/** Of the caller, whose secret access key is the key of the source. */
export const ACCESS_KEY_ID = {
  schema: accessKeyIdText,
  label: 'Access key id of the caller',
  placeholder: 'AKIAIOSFODNN7EXAMPLE',
};

const arn = z.string().max(2048);
/** Of a session, unless another life is asked for. */
export const AWS_SESSION_SECONDS = 3600;
/** The longest session policy of AWS. */
const MAX_POLICY_CHARACTERS = 2048;

/** A role of AWS, and what its session may do at most. */
export const ROLE_FIELDS = {
  role_arn: {
    schema: arn.regex(
      /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,576}$/,
      'is not the ARN of a role, such as arn:aws:iam::123456789012:role/deploy',
    ),
    label: 'Role',
    placeholder: 'arn:aws:iam::123456789012:role/deploy',
  },
  session_name: {
    schema: z
      .string()
      .regex(/^[\w+=,.@-]{2,64}$/, 'is not a session name: 2 to 64 letters, digits and +=,.@-_')
      .default('svc'),
    label: 'Name of the session',
    hint: 'What the logs of AWS show',
  },
  /** The region whose STS is asked, and for which the call is signed. */
  region: AWS_REGION,
  duration_seconds: { ...DURATION_SECONDS, schema: z.number().int().min(900).max(43_200).default(AWS_SESSION_SECONDS) },
  policy: {
    schema: z
      .string()
      .max(MAX_POLICY_CHARACTERS)
      .refine(isJsonObject, 'is not a JSON object, such as {"Version":"2012-10-17","Statement":[...]}')
      .optional(),
    label: 'Session policy',
    hint: 'In JSON: the session may do what both it and the role allow',
    isLong: true,
  },
  policy_arns: {
    schema: z
      .array(arn.regex(/^arn:aws[a-z-]*:iam::(?:\d{12}|aws):policy\/[\w+=,.@/-]+$/, 'is not the ARN of a policy'))
      .min(1)
      .max(10)
      .optional(),
    label: 'Managed policies',
    hint: `${LIST}: they narrow the session in the same way`,
    isRare: true,
  },
  sts_url: { schema: providerUrl.optional(), label: 'STS', hint: 'Empty: that of the region', isRare: true },
} as const;

function isJsonObject(text: string): boolean {
  const value = parseJson(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface Role {
  readonly policy?: string | undefined;
  readonly policy_arns?: readonly string[] | undefined;
  readonly duration_seconds: number;
}

/** AWS adds up the session policies of one call, so a second one beside those of the source would be more. */
export const NARROWED_ROLE = {
  policy: ({ policy, policy_arns: arns }: Role) =>
    (policy ?? arns) === undefined
      ? null
      : 'the source has a session policy, and AWS adds up two of them: have another secret minted',
  duration_seconds: (source: Role, wanted: Narrowing) => fewerSeconds(source.duration_seconds, wanted),
};
