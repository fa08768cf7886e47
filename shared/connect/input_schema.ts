import {
  operationHosts,
  type ConnectorSpec,
  type InputType,
  type Operation,
  type OperationInput,
} from '../model/connector.ts';

/** One property of an {@link InputSchema}: the subset of JSON Schema 2020-12 that every tool client reads. */
interface PropertySchema {
  readonly type: InputType;
  readonly description?: string;
  readonly items?: { readonly type?: readonly InputType[] };
  readonly enum?: readonly string[];
  readonly minLength?: number;
}

/** The JSON Schema of an operation's inputs. */
interface InputSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, PropertySchema>>;
  readonly required: readonly string[];
  readonly additionalProperties: false;
}

/** The inputs of an operation for a program that knows only the schema. */
interface OperationInputs {
  readonly schema: InputSchema;
  /** The input of each property whose name differs from it. */
  readonly inputNames: Readonly<Record<string, string>>;
  /** The property that selects the host; null if there is only one host. */
  readonly hostProperty: string | null;
}

/** A call by the schema's properties, in the form of `POST /v1/connector-operations/run`. */
interface RunInputs {
  readonly args: Readonly<Record<string, unknown>>;
  /** Undefined if none was selected; the run itself checks the value. */
  readonly host: unknown;
}

/** Model providers refuse a whole tool list if one property name does not match this. */
const MAX_PROPERTY_CHARACTERS = 64;
const PROPERTY_NAME = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * The JSON Schema of an operation's inputs, made from its spec. An input keeps its name if that is allowed; `filter[state]`
 * becomes `filter_state_`, and never the name of another input.
 */
export function operationInputs(spec: ConnectorSpec, operation: Operation): OperationInputs {
  const taken = new Set(operation.inputs.map(({ name }) => name));
  const named = operation.inputs.map((input) => ({ input, property: propertyOf(input.name, taken) }));
  const hosts = operationHosts(spec, operation);
  const hostProperty = hosts.length > 1 ? freeName('host', taken) : null;
  const properties: (readonly [string, PropertySchema])[] = named.map(({ input, property }) => [
    property,
    propertySchema(input),
  ]);
  if (hostProperty !== null) properties.push([hostProperty, hostSchema(hosts)]);
  return {
    schema: {
      type: 'object',
      properties: Object.fromEntries(properties),
      required: named.filter(({ input }) => input.required).map(({ property }) => property),
      additionalProperties: false,
    },
    inputNames: Object.fromEntries(
      named
        .filter(({ input, property }) => property !== input.name)
        .map(({ input, property }) => [property, input.name]),
    ),
    hostProperty,
  };
}

/** The run that a call by the schema's properties asks for. Unknown properties are kept, so that they are refused by name. */
export function runInputs(
  { inputNames, hostProperty }: Pick<OperationInputs, 'inputNames' | 'hostProperty'>,
  given: Readonly<Record<string, unknown>>,
): RunInputs {
  const args = Object.entries(given)
    .filter(([property]) => property !== hostProperty)
    .map(
      ([property, value]) => [Object.hasOwn(inputNames, property) ? inputNames[property] : property, value] as const,
    );
  const host = hostProperty !== null && Object.hasOwn(given, hostProperty) ? given[hostProperty] : undefined;
  return { args: Object.fromEntries(args), host };
}

/** The property for a problem's field (`args.<input>`, `host`), as the caller wrote it. */
export function propertyOfField(
  { inputNames, hostProperty }: Pick<OperationInputs, 'inputNames' | 'hostProperty'>,
  field: string,
): string {
  if (field === 'host') return hostProperty ?? field;
  const input = field.startsWith('args.') ? field.slice('args.'.length) : field;
  return Object.entries(inputNames).find(([, name]) => name === input)?.[0] ?? input;
}

function propertyOf(name: string, taken: Set<string>): string {
  if (PROPERTY_NAME.test(name)) return name;
  return freeName(name.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, MAX_PROPERTY_CHARACTERS - 4), taken);
}

/** The name, or the first free one of `name_2`, `name_3` ...; reserves it. */
function freeName(name: string, taken: Set<string>): string {
  let free = name;
  for (let count = 2; taken.has(free); count += 1) free = `${name}_${count}`;
  taken.add(free);
  return free;
}

function propertySchema(input: OperationInput): PropertySchema {
  const { type, description } = input;
  return {
    type,
    ...(description === '' ? {} : { description }),
    ...(type === 'array' ? { items: input.in === 'query' ? { type: ['string', 'number', 'boolean'] } : {} } : {}),
    ...(type === 'string' && input.in === 'path' ? { minLength: 1 } : {}),
  };
}

function hostSchema(hosts: readonly string[]): PropertySchema {
  return { type: 'string', enum: hosts, description: `The host to ask; ${hosts[0] ?? ''} if omitted.` };
}
