import { z } from 'zod';
import {
  APPROVALS,
  CREDENTIAL_KINDS,
  GRAPHQL_TYPES,
  INPUT_LOCATIONS,
  INPUT_TYPES,
  OPERATION_METHODS,
  TOKEN_REQUESTS,
  type ConnectorSpec,
  type GraphqlSelector,
  type JsonRule,
  type Operation,
} from '../../model/connector.ts';
import { EFFECTS } from '../../model/host_binding.ts';
import { isPlainPath } from '../../net/http/plain_path.ts';
import { checkConnectorSpec } from './connector_spec_rules.ts';
import {
  graphqlFieldText,
  hostText,
  httpsUrlText,
  nameText,
  pathText,
  pointerText,
  proseText,
} from './connector_spec_fields.ts';
import { oneOfValues } from '../host_binding_fields.ts';
import { describeUnknownFields } from '../host_binding_rules.ts';

const MAX_OPERATIONS = 500;
const MAX_INPUTS = 100;
const MAX_CONNECTOR_HOSTS = 50;
const MAX_GRAPHQL_FIELDS = 200;
const MAX_JSON_RULES = 20;
const MAX_JSON_VALUES = 100;
const MAX_LOGIN_PATHS = 50;

const hosts = (what: string) =>
  z
    .array(hostText, { error: `must be a list of hosts${what}, such as ["api.example.com"]` })
    .min(1, { error: 'is empty: name at least one host; the first one builds upstream URLs' })
    .max(MAX_CONNECTOR_HOSTS, { error: `has more than ${MAX_CONNECTOR_HOSTS} hosts` });

const input = strictObject('an input', {
  name: nameText('the name of the argument'),
  in: oneOfValues(INPUT_LOCATIONS),
  type: oneOfValues(INPUT_TYPES).default('string'),
  required: z.boolean({ error: 'must be true or false' }).default(false),
  description: proseText(2_000).default(''),
}).meta({ id: 'OperationInput' });

const auditField = strictObject('an audit field', {
  name: nameText('the name in the audit event'),
  source: z.string({ error: 'is missing: write <place>.<input>, such as path.owner, or status' }).max(200),
  redact: z.boolean({ error: 'must be true or false' }).default(false),
});

const graphqlSelector = strictObject('a GraphQL selector', {
  type: oneOfValues(GRAPHQL_TYPES),
  fields: z
    .array(graphqlFieldText, { error: 'must be a list of top-level fields, such as ["mergePullRequest"]' })
    .min(1, { error: 'is empty: name a field, or leave the list out for every field that no other operation lists' })
    .max(MAX_GRAPHQL_FIELDS, { error: `has more than ${MAX_GRAPHQL_FIELDS} fields` })
    .optional(),
}).meta({ id: 'GraphqlSelector' });

const jsonNumber = z
  .number({ error: 'must be a number' })
  .refine((value) => Math.abs(value) <= Number.MAX_SAFE_INTEGER, {
    error: `is beyond ${Number.MAX_SAFE_INTEGER}: servers may not read such a number exactly`,
  });

const jsonScalar = z.union([z.string().max(200), z.boolean(), jsonNumber], {
  error: 'must be a text of at most 200 characters, a number, true or false',
});

/** A value and a list of one are the same. */
const jsonEquals = z
  .preprocess((value) => (Array.isArray(value) ? value : [value]), z.array(jsonScalar))
  .refine((values) => values.length > 0, { error: 'is empty: name at least one value' })
  .refine((values) => values.length <= MAX_JSON_VALUES, { error: `has more than ${MAX_JSON_VALUES} values` });

const jsonRule = strictObject('a rule for the JSON body', {
  pointer: pointerText,
  equals: jsonEquals.optional(),
  at_least: jsonNumber.optional(),
  at_most: jsonNumber.optional(),
}).meta({ id: 'JsonRule' });

const operation = strictObject('an operation', {
  name: nameText('the name of the operation, such as list-issues'),
  method: oneOfValues(OPERATION_METHODS),
  path: pathText,
  summary: proseText(200).default(''),
  description: proseText(4_000).default(''),
  hosts: hosts(' of this operation').optional(),
  graphql: graphqlSelector.optional(),
  json: z
    .array(jsonRule, { error: 'must be a list of rules, such as [{ "pointer": "/amount", "at_most": 100 }]' })
    .min(1, { error: 'is empty: name a rule, or leave the list out for every body that no other operation names' })
    .max(MAX_JSON_RULES, { error: `has more than ${MAX_JSON_RULES} rules` })
    .optional(),
  approval: oneOfValues(APPROVALS).default('none'),
  effect: oneOfValues(EFFECTS),
  inputs: z
    .array(input, { error: 'must be a list of inputs' })
    .max(MAX_INPUTS, { error: `has more than ${MAX_INPUTS} inputs` })
    .default([]),
  audit: z
    .array(auditField, { error: 'must be a list of audit fields' })
    .max(20, { error: 'has more than 20 audit fields' })
    .default([]),
}).meta({ id: 'Operation' });

/** With all below it. */
const loginPath = z
  .string({ error: 'must be a path, such as /v1/messages' })
  .max(200)
  .refine(isPlainPath, { error: 'must be a plain path, such as /v1/messages: no escape, no dot segment' });

const login = strictObject('the login of a program', {
  client_id: proseText(500).min(1, { error: 'is empty: write the client id of the program' }),
  token_request: oneOfValues(TOKEN_REQUESTS).default('form'),
  hosts: hosts(' that get the access token'),
  paths: z
    .array(loginPath, { error: 'must be a list of paths, such as ["/v1/messages"]' })
    .max(MAX_LOGIN_PATHS, { error: `has more than ${MAX_LOGIN_PATHS} paths` })
    .optional(),
}).meta({ id: 'ProgramLogin' });

const credential = strictObject('a credential', {
  kind: oneOfValues(CREDENTIAL_KINDS),
  authorization_url: httpsUrlText.optional(),
  token_url: httpsUrlText.optional(),
  device_authorization_url: httpsUrlText.optional(),
  revocation_url: httpsUrlText.optional(),
  scopes: z
    .array(
      z.string().regex(/^[!#-[\]-~]{1,200}$/, { error: 'is not a scope: printable ASCII without spaces and quotes' }),
      { error: 'must be a list of scopes' },
    )
    .max(100, { error: 'has more than 100 scopes' })
    .default([]),
  login: login.optional(),
});

const identity = strictObject('the connector', {
  fqn: z
    .string({ error: 'is missing: write publisher/name, such as acme/tickets' })
    .max(128, { error: 'is longer than 128 characters' })
    .regex(/^[a-z0-9][a-z0-9._-]*\/[a-z0-9][a-z0-9._-]*$/, {
      error: 'must be publisher/name, each of lower-case letters, digits, ".", "_" and "-"',
    }),
  version: z
    .string({ error: 'is missing: write a version such as 1.0.0' })
    .regex(/^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/, { error: 'is not a version: write one such as 1.0.0' }),
  title: proseText(200),
  description: proseText(4_000).default(''),
});

const fields = {
  schema_version: z.literal(1, { error: 'must be 1, the only version' }),
  connector: identity,
  hosts: hosts(''),
  credential,
  operations: z
    .array(operation, { error: 'must be a list of operations' })
    .min(1, { error: 'is empty: a connector has at least one operation' })
    .max(MAX_OPERATIONS, { error: `has more than ${MAX_OPERATIONS} operations: split the connector` }),
};

const spec = strictObject('a connector spec', fields).superRefine(checkConnectorSpec, { when: () => true });

/** A connector spec as written by people and accepted by `POST /v1/connectors` (design section 5, Connector spec). */
export const connectorSpec = spec.meta({ id: 'ConnectorSpec' });
export type ConnectorSpecInput = z.input<typeof connectorSpec>;
/** With canonical hosts and defaults filled in. */
export type ConnectorSpecRecord = z.output<typeof connectorSpec>;

/** The spec that the engine acts on. */
export function toConnectorSpec(record: ConnectorSpecRecord): ConnectorSpec {
  const { kind, authorization_url, token_url, device_authorization_url, scopes, login: own } = record.credential;
  const { revocation_url } = record.credential;
  return {
    ...record.connector,
    hosts: record.hosts,
    credential: {
      kind,
      ...(authorization_url === undefined ? {} : { authorizationUrl: authorization_url }),
      ...(token_url === undefined ? {} : { tokenUrl: token_url }),
      ...(device_authorization_url === undefined ? {} : { deviceAuthorizationUrl: device_authorization_url }),
      ...(revocation_url === undefined ? {} : { revocationUrl: revocation_url }),
      scopes,
      ...(own === undefined
        ? {}
        : {
            login: {
              clientId: own.client_id,
              tokenRequest: own.token_request,
              hosts: own.hosts,
              // Without them: no path.
              paths: own.paths ?? [],
            },
          }),
    },
    operations: record.operations.map((each) => toOperation(each)),
  };
}

function toOperation({ hosts: own, graphql, json, ...rest }: ConnectorSpecRecord['operations'][number]): Operation {
  return {
    ...rest,
    ...(own === undefined ? {} : { hosts: own }),
    ...(graphql === undefined ? {} : { graphql: toSelector(graphql) }),
    ...(json === undefined ? {} : { json: json.map((rule) => toJsonRule(rule)) }),
  };
}

function toSelector({ type, fields: listed }: z.output<typeof graphqlSelector>): GraphqlSelector {
  return listed === undefined ? { type } : { type, fields: listed };
}

/** The rule that the engine acts on. */
export function toJsonRule({
  pointer,
  equals,
  at_least: atLeast,
  at_most: atMost,
}: z.output<typeof jsonRule>): JsonRule {
  return {
    pointer,
    ...(equals === undefined ? {} : { equals }),
    ...(atLeast === undefined ? {} : { atLeast }),
    ...(atMost === undefined ? {} : { atMost }),
  };
}

/** The JSON Schema of a spec, for editors; `id` is its published URL. */
export function connectorSpecJsonSchema(id: string): object {
  const schema = z.toJSONSchema(spec, { io: 'input', target: 'draft-2020-12' });
  return { $id: id, title: 'svc connector spec', ...schema };
}

/** A strict object whose messages name the object and the likely field for an unknown one. */
function strictObject<const T extends z.ZodRawShape>(what: string, shape: T) {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return `must be ${what}, an object`;
      return describeUnknownFields(Array.isArray(issue.keys) ? issue.keys.map(String) : [], known);
    },
  });
}
