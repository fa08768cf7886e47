import { z } from 'zod';

/** What of JSON Schema our schemas consist of. Another word is an error: what is not compared could differ. */
const node: z.ZodType<SchemaNode> = z.lazy(() =>
  z.strictObject({
    $schema: z.string().optional(),
    $ref: z.string().optional(),
    $defs: z.record(z.string(), node).optional(),
    id: z.string().optional(),
    description: z.string().optional(),
    format: z.string().optional(),
    default: z.unknown().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    const: z.unknown().optional(),
    enum: z.array(z.unknown()).optional(),
    anyOf: z.array(node).optional(),
    oneOf: z.array(node).optional(),
    allOf: z.array(node).optional(),
    properties: z.record(z.string(), node).optional(),
    required: z.array(z.string()).optional(),
    additionalProperties: z.union([z.boolean(), node]).optional(),
    propertyNames: node.optional(),
    items: node.optional(),
    minItems: z.number().optional(),
    maxItems: z.number().optional(),
    minLength: z.number().optional(),
    maxLength: z.number().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    pattern: z.string().optional(),
  }),
);

interface SchemaNode {
  readonly $ref?: string | undefined;
  readonly $defs?: Readonly<Record<string, SchemaNode>> | undefined;
  readonly type?: string | readonly string[] | undefined;
  readonly const?: unknown;
  readonly enum?: readonly unknown[] | undefined;
  readonly anyOf?: readonly SchemaNode[] | undefined;
  readonly oneOf?: readonly SchemaNode[] | undefined;
  readonly allOf?: readonly SchemaNode[] | undefined;
  readonly properties?: Readonly<Record<string, SchemaNode>> | undefined;
  readonly required?: readonly string[] | undefined;
  readonly additionalProperties?: boolean | SchemaNode | undefined;
  readonly items?: SchemaNode | undefined;
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
  readonly minLength?: number | undefined;
  readonly maxLength?: number | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly pattern?: string | undefined;
}

/**
 * Compares what a writer sends with what a reader takes, and returns the paths at which the reader would refuse something that the
 * writer may send, with the reason. None: every message of the writer is read.
 */
export function findUnread(writer: unknown, reader: unknown): readonly string[] {
  const [sent, read] = [node.parse(writer), node.parse(reader)];
  return compare({ schema: sent, root: sent }, { schema: read, root: read }, '');
}

interface Place {
  readonly schema: SchemaNode;
  /** What holds the definitions. */
  readonly root: SchemaNode;
}

function compare(written: Place, reading: Place, path: string): readonly string[] {
  const [sent, read] = [resolve(written), resolve(reading)];
  const of = (schema: SchemaNode): Place => ({ schema, root: written.root });
  const by = (schema: SchemaNode): Place => ({ schema, root: reading.root });
  const branches = sent.anyOf ?? sent.oneOf;
  if (branches !== undefined) return unique(branches.flatMap((branch) => compare(of(branch), reading, path)));
  const choices = read.anyOf ?? read.oneOf;
  if (choices !== undefined) {
    const attempts = choices.map((choice) => compare(written, by(choice), path));
    return attempts.toSorted((a, b) => a.length - b.length)[0] ?? [`${path}: nothing is read`];
  }
  const values = compareValues(sent, read);
  const here = values.length > 0 ? values : compareLimits(sent, read);
  if (here.length > 0) return here.map((problem) => `${path}: ${problem}`);
  const items = read.items === undefined ? [] : compare(of(sent.items ?? {}), by(read.items), `${path}[]`);
  return [...items, ...compareFields(sent, read, of, by, path)];
}

/** Without a reference, and with a choice instead of several types. */
function resolve({ schema, root }: Place): SchemaNode & { readonly type?: string | undefined } {
  if (schema.$ref === undefined) {
    const { type, ...rest } = schema;
    if (typeof type !== 'object') return { ...rest, type };
    return { anyOf: type.map((each) => ({ ...rest, type: each })) };
  }
  const name = schema.$ref.replace(/^#\/\$defs\//, '');
  const found = root.$defs?.[name];
  if (found === undefined) throw new Error(`${schema.$ref} is not defined`);
  return resolve({ schema: found, root });
}

const valuesOf = ({ const: only, enum: several }: SchemaNode): readonly unknown[] | null =>
  several ?? (only === undefined ? null : [only]);

type Resolved = ReturnType<typeof resolve>;

function compareValues(sent: Resolved, read: Resolved): readonly string[] {
  const [values, known] = [valuesOf(sent), valuesOf(read)];
  if (known !== null) {
    if (values === null) return ['any value is sent, and only some are read'];
    const unread = values.filter((value) => !known.includes(value));
    return unread.map((value) => `the value ${JSON.stringify(value)} is not read`);
  }
  if (read.type === undefined) return [];
  const isWider = sent.type === read.type || (sent.type === 'integer' && read.type === 'number');
  return isWider ? [] : [`${sent.type ?? 'anything'} is sent, and ${read.type} is read`];
}

const LEAST = ['minItems', 'minLength', 'minimum'] as const;
const MOST = ['maxItems', 'maxLength', 'maximum'] as const;

function compareLimits(sent: SchemaNode, read: SchemaNode): readonly string[] {
  if (valuesOf(sent) !== null) return [];
  const patterns = patternsOf(sent);
  return [
    ...LEAST.filter((word) => (sent[word] ?? -Infinity) < (read[word] ?? -Infinity)),
    ...MOST.filter((word) => (sent[word] ?? Infinity) > (read[word] ?? Infinity)),
  ]
    .map((word) => `${word} is ${sent[word] ?? 'not limited'}, and ${read[word]} is read`)
    .concat(
      patternsOf(read).flatMap((pattern) =>
        patterns.includes(pattern) ? [] : ['the pattern that is read is another'],
      ),
    );
}

function patternsOf({ pattern, allOf = [] }: SchemaNode): readonly string[] {
  return [...(pattern === undefined ? [] : [pattern]), ...allOf.flatMap(patternsOf)];
}

function compareFields(
  sent: SchemaNode,
  read: SchemaNode,
  of: (schema: SchemaNode) => Place,
  by: (schema: SchemaNode) => Place,
  path: string,
): readonly string[] {
  if (read.type !== 'object') return [];
  const missing = (read.required ?? []).filter((name) => sent.required?.includes(name) !== true);
  const problems = missing.map((name) => `${path}.${name}: is required, and may be missing`);
  for (const [name, field] of Object.entries(sent.properties ?? {})) {
    const known = read.properties?.[name];
    if (known !== undefined) problems.push(...compare(of(field), by(known), `${path}.${name}`));
    else if (read.additionalProperties === false) problems.push(`${path}.${name}: is a field that is not read`);
    else if (typeof read.additionalProperties === 'object') {
      problems.push(...compare(of(field), by(read.additionalProperties), `${path}.${name}`));
    }
  }
  if (typeof read.additionalProperties === 'object' && typeof sent.additionalProperties === 'object') {
    problems.push(...compare(of(sent.additionalProperties), by(read.additionalProperties), `${path}.*`));
  }
  return problems;
}

function unique(problems: readonly string[]): readonly string[] {
  return [...new Set(problems)];
}
