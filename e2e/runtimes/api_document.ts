import fc from 'fast-check';
import { z } from 'zod';

/** The part of JSON Schema that the API's description uses. */
const schemaObject = z.looseObject({
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  enum: z.array(z.unknown()).optional(),
  oneOf: z.array(z.unknown()).optional(),
  anyOf: z.array(z.unknown()).optional(),
  pattern: z.string().optional(),
  format: z.string().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minItems: z.number().optional(),
  items: z.unknown().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  required: z.array(z.string()).optional(),
});
type Schema = z.output<typeof schemaObject>;

const content = z.looseObject({ 'application/json': z.object({ schema: z.unknown() }).optional() });
const operationObject = z.object({
  security: z.array(z.record(z.string(), z.unknown())),
  parameters: z
    .array(
      z.object({
        name: z.string(),
        in: z.enum(['query', 'path', 'header']),
        required: z.boolean(),
        schema: z.unknown(),
      }),
    )
    .default([]),
  requestBody: z.object({ content }).optional(),
  responses: z.record(z.string(), z.object({ content: content.optional() })),
});
const documentObject = z.object({
  paths: z.record(z.string(), z.record(z.string(), operationObject)),
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
});

/** An operation as the API describes it. */
export interface DescribedOperation {
  readonly method: string;
  readonly path: string;
  readonly access: 'anyone' | 'user' | 'sidecar';
  /** Serves a browser, and refuses with a page. */
  readonly isOfBrowser: boolean;
  /** Valid parameters: of the query, of the path, and headers. */
  readonly parameters: fc.Arbitrary<readonly Parameter[]>;
  /** A valid body; null for an operation without one. */
  readonly body: fc.Arbitrary<unknown> | null;
  /** The schema of a success with this status; null if it is not JSON, undefined if it is not described. */
  success(status: number): z.ZodType | null | undefined;
}
export interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'path' | 'header';
  readonly value: string;
}

/**
 * Values for fields and named schemas whose rules a JSON Schema cannot express: without them nearly every call would be
 * refused.
 */
type Hints = Readonly<Record<string, fc.Arbitrary<unknown>>>;

/** Reads the API's own description. */
export function readDocument(text: string, hints: Hints): readonly DescribedOperation[] {
  const document = documentObject.parse(JSON.parse(text));
  const reader = new SchemaReader(document.components.schemas, hints);
  // Directories send and get another media type; worker/scim/scim.test.ts fuzzes their endpoints.
  const described = Object.entries(document.paths).filter(([path]) => !path.startsWith('/scim/'));
  return described.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      access: accessOf(operation.security),
      isOfBrowser: operation.responses['default']?.content?.['text/html'] !== undefined,
      parameters: parametersOf(operation.parameters, reader),
      body: operation.requestBody ? reader.values(jsonSchemaOf(operation.requestBody.content)) : null,
      success: (status: number) => {
        const reply = operation.responses[String(status)];
        if (reply === undefined) return undefined;
        return reply.content === undefined ? null : reader.validator(jsonSchemaOf(reply.content));
      },
    })),
  );
}

function accessOf(security: readonly Readonly<Record<string, unknown>>[]): DescribedOperation['access'] {
  const names = security.flatMap((requirement) => Object.keys(requirement));
  if (names.includes('sidecar')) return 'sidecar';
  // An alternative without a scheme: no sign-in is required.
  if (security.some((requirement) => Object.keys(requirement).length === 0)) return 'anyone';
  return names.includes('user') ? 'user' : 'anyone';
}

function jsonSchemaOf(described: z.output<typeof content>): unknown {
  return described['application/json']?.schema;
}

function parametersOf(
  parameters: z.output<typeof operationObject>['parameters'],
  reader: SchemaReader,
): fc.Arbitrary<readonly Parameter[]> {
  const each = parameters.map((parameter) => {
    const { name, in: place } = parameter;
    const given = reader.values(parameter.schema, name).map((value) => ({ name, in: place, value: String(value) }));
    return parameter.required ? given : fc.option(given, { nil: null, freq: 1 });
  });
  return fc.tuple(...each).map((given) => given.filter((parameter) => parameter !== null));
}

class SchemaReader {
  readonly #named: Readonly<Record<string, unknown>>;
  readonly #hints: Hints;

  constructor(named: Readonly<Record<string, unknown>>, hints: Hints) {
    this.#named = named;
    this.#hints = hints;
  }

  /** Checks values against a schema. */
  validator(schema: unknown): z.ZodType {
    const text = JSON.stringify({ ...schemaObject.parse(schema), $defs: this.#named });
    const closed: z.core.JSONSchema.JSONSchema = JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/'));
    return z.fromJSONSchema(closed);
  }

  /** Values that fit a schema; `name` is the name of the schema or of the field. */
  values(described: unknown, name = ''): fc.Arbitrary<unknown> {
    const hint = this.#hints[name];
    if (hint !== undefined) return hint;
    const schema = schemaObject.parse(described);
    const refersTo = schema.$ref?.split('/').at(-1);
    if (refersTo !== undefined) return this.values(this.#named[refersTo], refersTo);
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    const forms = schema.oneOf ?? schema.anyOf;
    if (forms !== undefined) return fc.oneof(...forms.map((form) => this.values(form, name)));
    const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
    if (type === 'string') return texts(schema);
    if (type === 'integer') return fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 1_000 });
    if (type === 'array') return fc.array(this.values(schema.items), { minLength: schema.minItems ?? 0, maxLength: 4 });
    return type === 'object' ? this.#objects(schema) : fc.jsonValue();
  }

  #objects({ properties = {}, required = [] }: Schema): fc.Arbitrary<unknown> {
    const fields = Object.entries(properties).map(([name, schema]) => [name, this.values(schema, name)] as const);
    return fc.record(Object.fromEntries(fields), { requiredKeys: required });
  }
}

function texts(schema: Schema): fc.Arbitrary<string> {
  if (schema.pattern !== undefined) return fc.stringMatching(new RegExp(schema.pattern));
  if (schema.format === 'date-time')
    return fc.date({ noInvalidDate: true, ...YEARS }).map((date) => date.toISOString());
  return fc.string({ minLength: schema.minLength ?? 0, maxLength: Math.min(schema.maxLength ?? 40, 200) });
}

const YEARS = { min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z') };
