import { mcpReference } from '../../../shared/mcp/references.ts';
import { type ApiError, fieldProblems } from '../../../shared/wire/errors.ts';
import { ownReference, withOwnReferences } from '../../../shared/wire/mcp/mcp_references.ts';
import { mcpServerInput, type McpServerRecord, type ValidMcpServer } from '../../../shared/wire/mcp/mcp_servers.ts';
import type { FormState } from '../../pages/components/form_field.ts';
import { nameReferences } from '../../pages/mcp/mcp_consent.ts';
import { SERVER_FIELDS } from '../../pages/mcp/mcp_server_form.ts';
import { type Fields, toRefusedForm } from './console.ts';
import { type Cleared, clearArgument, clearHeader, clearQuery, clearVariable, cutAtMark } from './typed_secrets.ts';
import type { FieldProblem } from '../../../shared/model/problem.ts';

/** Formats the lists of a configuration as lines of a form. Parsing them gives the same lists. */
export function formOfServer(server: McpServerRecord): Fields {
  const { id, name, description, version, command, env, isolation, url, transport, headers } = server;
  const [program = '', ...words] = command.map((word) => withoutId(id, word));
  return {
    name,
    description,
    version: version ?? '',
    program,
    arguments: words.map((word) => quoteLine(word)).join('\n'),
    env: Object.entries(env)
      .map(([key, value]) => (value === mcpReference(id, key) ? key : `${key}=${quoteLine(withoutId(id, value))}`))
      .join('\n'),
    isolation,
    url: nameReferences(id, url ?? ''),
    transport: transport ?? '',
    headers: Object.entries(headers)
      .map(([key, value]) => `${key}: ${nameReferences(id, value)}`)
      .join('\n'),
  };
}

function withoutId(id: string, text: string): string {
  return text.replaceAll(mcpReference(id, ''), ownReference(''));
}

/** A text that a line cannot represent is written as a JSON string. */
function quoteLine(text: string): string {
  return /^$|^["\s]|\s$|[\r\n]/.test(text) ? JSON.stringify(text) : text;
}

/** Null if a line starts like a JSON string and is not one. */
function unquoteLine(line: string): string | null {
  if (!line.startsWith('"')) return line;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'string' ? value : null;
  } catch {
    // Invalid JSON is reported beside its field.
    return null;
  }
}

/** The result of a form. */
interface ReadServer {
  /** Null if there is a problem. */
  readonly input: ValidMcpServer | null;
  /** The form to show again, without values that look like secrets. */
  readonly form: FormState;
}

/**
 * Makes a configuration from a form, new or in place of `before`. Untouched fields stay unchanged. A plaintext value
 * with the name of a secret is refused and removed from the form: the next page asks for it and stores it in the vault.
 */
export function readServerForm(fields: Fields, before: McpServerRecord | null): ReadServer {
  const reading = new Reading(fields, before);
  const { name = '', description = '', version = '', isolation, transport, owner, mode } = fields;
  const isLocal = (before?.mode ?? mode) !== 'remote';
  const parsed = mcpServerInput.safeParse({
    owner: before?.owner ?? owner,
    name,
    description,
    mode: isLocal ? 'local' : 'remote',
    version: version.trim() === '' ? null : version.trim(),
    ...(before === null ? { tools: toolsOf(fields) } : { ...keepFields(before) }),
    ...(isLocal
      ? { command: reading.command(), env: reading.env(), isolation }
      : { url: reading.url(), transport, headers: reading.headers() }),
  });
  const found = parsed.success ? [] : fieldProblems(parsed.error).map(placeProblem);
  const problems = sortProblems([...reading.problems, ...found]);
  const form = { values: reading.shown, problems, refusal: null };
  return { input: problems.length === 0 && parsed.success ? parsed.data : null, form };
}

/** The parts of a configuration that the form does not change. */
function keepFields({ tools, enabled, registry_id }: McpServerRecord) {
  return { tools, enabled, registry_id };
}

/** The form again, after the service refused its configuration. */
export function toRefusedServerForm(form: FormState, error: ApiError): FormState {
  if (error.code === 'name_taken') {
    return { ...form, problems: [{ field: 'name', message: 'is taken: choose another name' }], refusal: null };
  }
  const { problems, refusal } = toRefusedForm({}, error);
  return { ...form, problems: sortProblems(problems.map(placeProblem)), refusal };
}

/** The tool policy of a form, by tool name. */
export function toolsOf(fields: Fields) {
  const [allow, deny, approval] = (['allow', 'deny', 'approval'] as const).map((field) => wordsOf(fields[field]));
  return { allow: allow?.length === 0 ? null : allow, deny, approval };
}

function wordsOf(text = ''): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

function linesOf(text = ''): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** Parses the lists of a form, and collects their problems and the values that must not be shown again. */
class Reading {
  readonly #fields: Fields;
  readonly #before: McpServerRecord | null;
  readonly problems: FieldProblem[] = [];
  /** What is returned to the browser. */
  shown: Fields;

  constructor(fields: Fields, before: McpServerRecord | null) {
    this.#fields = fields;
    this.#before = before;
    this.shown = fields;
  }

  command(): readonly string[] {
    const { program = '' } = this.#fields;
    if (this.#before !== null && this.#isUntouched(['program', 'arguments'])) return this.#before.command;
    const lines = linesOf(this.#fields['arguments']);
    const words = lines.map((line, index) => this.#unquoteLine('arguments', line, index));
    this.#hideSecrets('arguments', lines, (line, index) => clearArgument(line, lines[index - 1] ?? ''));
    return program.trim() === '' ? [] : [program.trim(), ...words];
  }

  env(): Readonly<Record<string, string>> {
    if (this.#before !== null && this.#isUntouched(['env'])) return this.#before.env;
    const had = this.#before?.env ?? {};
    const lines = linesOf(this.#fields['env']).map((line) => line.replace(/^export\s+/, ''));
    this.#hideSecrets('env', lines, (line) => clearVariable(line, had));
    return this.#collectNamed(
      'env',
      lines.map((line, index) => {
        const [name, value] = cutAtMark(line, '=');
        return [name, value === null ? ownReference(name) : this.#unquoteLine('env', value, index)];
      }),
    );
  }

  headers(): Readonly<Record<string, string>> {
    if (this.#before !== null && this.#isUntouched(['headers'])) return this.#before.headers;
    const had = this.#before?.headers ?? {};
    const lines = linesOf(this.#fields['headers']);
    this.#hideSecrets('headers', lines, (line) => clearHeader(line, had));
    return this.#collectNamed(
      'headers',
      lines.flatMap((line, index): [string, string][] => {
        const [name, value] = cutAtMark(line, ':');
        if (value !== null && name !== '') return [[name, withOwnReferences(value)]];
        this.#report('headers', `has line ${index + 1}, which is not a header: write each as Name: value`);
        return [];
      }),
    );
  }

  url(): string | null {
    const { url = '' } = this.#fields;
    if (this.#before !== null && this.#isUntouched(['url'])) return this.#before.url;
    // The schema refuses a password there; it is not returned to the browser either.
    this.shown = { ...this.shown, url: url.replace(/^([a-z]+:\/\/)[^/?#]*@/i, '$1') };
    const [base = '', ...query] = url.trim().split('?');
    if (query.length === 0) return base === '' ? null : base;
    this.#hideSecrets('url', [this.shown['url']?.trim() ?? ''], clearQuery);
    return `${base}?${withOwnReferences(query.join('?'))}`;
  }

  #isUntouched(names: readonly string[]): boolean {
    const was = this.#before === null ? {} : formOfServer(this.#before);
    return names.every((name) => linesOf(this.#fields[name]).join('\n') === linesOf(was[name]).join('\n'));
  }

  #unquoteLine(field: string, line: string, index: number): string {
    const text = unquoteLine(line);
    if (text === null) {
      this.#report(field, `has line ${index + 1}, which starts with a quote but is not a JSON string: close the quote`);
    }
    return text ?? line;
  }

  #collectNamed(field: string, entries: readonly (readonly [string, string])[]): Readonly<Record<string, string>> {
    const names = entries.map(([name]) => name);
    const twin = names.find((name, index) => names.indexOf(name) < index);
    if (twin !== undefined) this.#report(field, `has ${twin} twice: write it once`);
    return Object.fromEntries(entries);
  }

  /** `clear`: the line without its secret, and the secret's name; null if it has none. */
  #hideSecrets(field: string, lines: readonly string[], clear: (line: string, index: number) => Cleared | null): void {
    const cleared = lines.map((line, index) => clear(line, index));
    const names = cleared.flatMap((each) => (each === null ? [] : [each.name]));
    if (names.length === 0) return;
    this.shown = { ...this.shown, [field]: lines.map((line, index) => cleared[index]?.line ?? line).join('\n') };
    this.#report(
      field,
      `had a plaintext value of ${names.join(', ')}, which was removed: send the form again, and the next page asks for the value and stores it in the vault`,
    );
  }

  #report(field: string, message: string): void {
    this.problems.push({ field, message });
  }
}

/** A problem of the configuration, at the form's field. */
function placeProblem({ field, message }: FieldProblem): FieldProblem {
  const [first = '', ...rest] = field.split('.');
  const place = rest.join('.');
  if (first === 'command' && (place === '' || place === '0')) return { field: 'program', message };
  if (first === 'command') return { field: 'arguments', message: `has argument ${place}, which ${message}` };
  if ((first === 'env' || first === 'headers') && place !== '') {
    return { field: first, message: `has ${place}, which ${message}` };
  }
  if (first === 'tools') return { field: place.replace(/\.\d+$/, ''), message };
  return { field, message };
}

/** In the order of the form: the first invalid field gets the focus. */
function sortProblems(problems: readonly FieldProblem[]): readonly FieldProblem[] {
  return problems.toSorted((one, other) => formPosition(one) - formPosition(other));
}

function formPosition({ field }: FieldProblem): number {
  return SERVER_FIELDS.includes(field) ? SERVER_FIELDS.indexOf(field) : SERVER_FIELDS.length;
}
