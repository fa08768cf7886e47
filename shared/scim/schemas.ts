/** The resources of SCIM that this server has (RFC 7643 sections 4 and 7). What a schema does not name is ignored. */

export const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const GROUP_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Group';
export const PATCH_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
export const LIST_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:ListResponse';
export const ERROR_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:Error';
const SCHEMA_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Schema';
const TYPE_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:ResourceType';
const CONFIG_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig';

/** An attribute as `/Schemas` describes it. */
export interface Attribute {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'complex' | 'reference';
  readonly multiValued: boolean;
  readonly description: string;
  readonly required: boolean;
  readonly caseExact: boolean;
  readonly mutability: 'readWrite' | 'readOnly' | 'immutable';
  readonly returned: 'default';
  readonly uniqueness: 'none' | 'server';
  readonly subAttributes?: readonly Attribute[];
}

function attribute(name: string, description: string, more: Partial<Attribute> = {}): Attribute {
  return {
    name,
    type: 'string',
    multiValued: false,
    description,
    required: false,
    caseExact: false,
    mutability: 'readWrite',
    returned: 'default',
    uniqueness: 'none',
    ...more,
  };
}

const NAME_PARTS = [
  'formatted',
  'familyName',
  'givenName',
  'middleName',
  'honorificPrefix',
  'honorificSuffix',
] as const;

const USER_ATTRIBUTES: readonly Attribute[] = [
  attribute('userName', 'The name at the directory; usually the address.', { required: true, uniqueness: 'server' }),
  attribute('externalId', 'The id at the directory.', { caseExact: true }),
  attribute('displayName', 'The name that people see.'),
  attribute('name', 'The parts of the name.', {
    type: 'complex',
    subAttributes: NAME_PARTS.map((part) => attribute(part, `The part ${part}.`)),
  }),
  attribute('emails', 'Addresses. The primary one, or the first, must be of a proven domain.', {
    type: 'complex',
    multiValued: true,
    subAttributes: [
      attribute('value', 'The address.'),
      attribute('type', 'Such as work.'),
      attribute('display', 'A label.'),
      attribute('primary', 'Whether it is the one that counts.', { type: 'boolean' }),
    ],
  }),
  attribute('active', 'False ends every access within seconds.', { type: 'boolean' }),
  attribute('groups', 'The groups that the directory manages.', {
    type: 'complex',
    multiValued: true,
    mutability: 'readOnly',
    subAttributes: [
      attribute('value', 'The id of the group.', { mutability: 'readOnly' }),
      attribute('display', 'Its name.', { mutability: 'readOnly' }),
    ],
  }),
];

const GROUP_ATTRIBUTES: readonly Attribute[] = [
  attribute('displayName', 'The name of the group.', { required: true, uniqueness: 'server' }),
  attribute('externalId', 'The id at the directory.', { caseExact: true }),
  attribute('members', 'Users that the directory manages.', {
    type: 'complex',
    multiValued: true,
    subAttributes: [
      attribute('value', 'The id of the user.', { mutability: 'immutable' }),
      attribute('display', 'The name of the user.', { mutability: 'readOnly' }),
    ],
  }),
];

/** A kind of resource. */
export interface ResourceKind {
  readonly name: 'User' | 'Group';
  readonly path: 'Users' | 'Groups';
  readonly schema: string;
  readonly attributes: readonly Attribute[];
}

export const USER_KIND: ResourceKind = {
  name: 'User',
  path: 'Users',
  schema: USER_SCHEMA,
  attributes: USER_ATTRIBUTES,
};
export const GROUP_KIND: ResourceKind = {
  name: 'Group',
  path: 'Groups',
  schema: GROUP_SCHEMA,
  attributes: GROUP_ATTRIBUTES,
};
const KINDS = [USER_KIND, GROUP_KIND];

/** The attribute with a name in whatever case. */
export function findAttribute(attributes: readonly Attribute[], name: string): Attribute | null {
  return attributes.find((each) => each.name.toLowerCase() === name.toLowerCase()) ?? null;
}

/** A name without the schema of a resource that may stand before it. */
export function localName(name: string): string {
  const schema = KINDS.map((kind) => `${kind.schema}:`).find((each) =>
    name.toLowerCase().startsWith(each.toLowerCase()),
  );
  return schema === undefined ? name : name.slice(schema.length);
}

/** The most resources of one reply to a list. */
export const MAX_RESULTS = 200;
export const DEFAULT_RESULTS = 100;

/** A list with all of its resources, or a page of them. */
export function listResponse(
  resources: readonly unknown[],
  { total, startIndex }: { readonly total: number; readonly startIndex: number },
) {
  return {
    schemas: [LIST_SCHEMA],
    totalResults: total,
    startIndex,
    itemsPerPage: resources.length,
    Resources: resources,
  };
}

/** `/ServiceProviderConfig` (RFC 7643 section 5). */
export function serviceProviderConfig(base: string) {
  return {
    schemas: [CONFIG_SCHEMA],
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: MAX_RESULTS },
    changePassword: { supported: false },
    sort: { supported: false },
    etag: { supported: true },
    authenticationSchemes: [
      {
        type: 'oauthbearertoken',
        name: 'Bearer token',
        description: 'A SCIM token that an owner of the enterprise created.',
        primary: true,
      },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
  };
}

/** The resources of `/ResourceTypes`. */
export function resourceTypes(base: string) {
  return KINDS.map(({ name, path, schema }) => ({
    schemas: [TYPE_SCHEMA],
    id: name,
    name,
    endpoint: `/${path}`,
    description: name,
    schema,
    meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${name}` },
  }));
}

/** The resources of `/Schemas`. */
export function schemaResources(base: string) {
  return KINDS.map(({ name, schema, attributes }) => ({
    schemas: [SCHEMA_SCHEMA],
    id: schema,
    name,
    description: name,
    attributes,
    meta: { resourceType: 'Schema', location: `${base}/Schemas/${schema}` },
  }));
}
