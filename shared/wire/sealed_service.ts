import { z } from 'zod';
import { err, ok, type Result } from '../model/result.ts';
import { fillTemplate, placeholdersOf, type BindingTemplate } from './binding_template.ts';
import { fieldProblems } from './errors.ts';
import { vaultPath } from './secrets.ts';

const line = z.string().min(1).max(500);
const name = z.string().regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be lower-case words joined by "-"');

/** The fields of a binding that a person gives for a service, each by the option of its name. */
const SERVICE_FIELDS = ['host', 'username', 'access_key_id', 'region', 'service'] as const;
export type ServiceField = (typeof SERVICE_FIELDS)[number];
/** What a person gave for a service. */
export type ServiceValues = { readonly [F in ServiceField]?: string };

const sealedService = z.strictObject({
  /** The name for `svc seal`, and the file's name. */
  name,
  title: line,
  /** Where the vault stores the credential, unless a person chooses another path. */
  secret: vaultPath,
  /** What a person pastes. */
  credential: line,
  /** Where it is documented how to get one. */
  source: z.strictObject({ title: line, url: z.url({ protocol: /^https$/ }) }),
  /** The binding templates that the service needs. An optional one is used if every value that it needs is given. */
  bindings: z.array(z.strictObject({ template: name, optional: z.literal(true).optional() })).min(1),
  /** The values that the templates leave open, described for a person. */
  asks: z.partialRecord(z.enum(SERVICE_FIELDS), line).default({}),
  /** Environment variables in which clients of the service expect the credential. */
  variables: z.array(z.string().regex(/^[A-Z][A-Z0-9_]*$/)).default([]),
  /** The connector of the catalog that uses the same credential. */
  connector: z.string().optional(),
  /** A command that shows whether it works. */
  try: line.optional(),
});

/** A well-known service with every binding that it needs: a file of `catalog/services/`. */
export type SealedService = z.output<typeof sealedService>;

/** Checks a service file's content, as returned by the YAML parser; the error is a sentence. */
export function parseSealedService(value: unknown): Result<SealedService, string> {
  const parsed = sealedService.safeParse(value);
  if (parsed.success) return ok(parsed.data);
  const problems = fieldProblems(parsed.error).map(({ field, message }) => `${field || 'service'}: ${message}`);
  return err(problems.join('; '));
}

/** A service's bindings, or the values that are still missing. */
type ServiceBindings = Result<readonly Readonly<Record<string, unknown>>[], readonly ServiceField[]>;

/** The bindings of a service, from its templates and the given values. They must still be validated as bindings. */
export function bindingsOfService(
  service: SealedService,
  templates: readonly BindingTemplate[],
  given: {
    readonly values: ServiceValues;
    readonly credentialRef: string;
    readonly owner: string;
  },
): ServiceBindings {
  const bindings: Readonly<Record<string, unknown>>[] = [];
  const missing = new Set<ServiceField>();
  for (const { template: wanted, optional } of service.bindings) {
    const template = findNamed(templates, wanted);
    const needed = fieldsNeeded(template);
    const open = needed.filter((field) => given.values[field] === undefined);
    if (open.length > 0 && optional !== true) for (const field of open) missing.add(field);
    if (open.length > 0) continue;
    const values = Object.fromEntries(needed.map((field) => [field, given.values[field]]));
    const filled = fillTemplate(template, { ...values, credential_ref: given.credentialRef, owner: given.owner });
    if (!filled.ok) throw new Error(filled.error.message);
    bindings.push(filled.value);
  }
  return missing.size === 0 ? ok(bindings) : err(SERVICE_FIELDS.filter((field) => missing.has(field)));
}

/** The values that a template leaves open, besides the credential. */
export function fieldsNeeded(template: BindingTemplate): readonly ServiceField[] {
  const names = placeholdersOf(template).flatMap(({ name: placeholder, fields }) => {
    const own = placeholder.replaceAll('-', '_');
    return isServiceField(own) ? [own] : fields.filter(isServiceField);
  });
  return SERVICE_FIELDS.filter((field) => names.includes(field));
}

function isServiceField(text: string): text is ServiceField {
  return SERVICE_FIELDS.some((field) => field === text);
}

function findNamed(templates: readonly BindingTemplate[], wanted: string): BindingTemplate {
  const found = templates.find((template) => template.name === wanted);
  if (found === undefined) throw new Error(`there is no binding template ${JSON.stringify(wanted)}`);
  return found;
}
