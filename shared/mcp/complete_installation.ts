import type { McpMode, McpTransport } from '../model/mcp_server.ts';
import { err, ok, type Result } from '../model/result.ts';
import { commandDangers, refusalOf } from './command_dangers.ts';
import type { Danger } from './dangers/danger.ts';
import { inputProblems, inputValues, type InputProblem, type InputValues } from './install/input_values.ts';
import type { InstallationPlan, PlanArgument, PlanField, PlanInput, Template } from './install/plan.ts';
import { mcpReference, referenceProblem } from './references.ts';

/** A credential that the server still needs, or may have. */
interface RequiredCredential {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  readonly secret: boolean;
}

/** The configuration made from a plan and its inputs, and the values for the vault. */
export interface CompletedInstallation {
  readonly mode: McpMode;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly url: string | null;
  readonly transport: McpTransport | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly version: string | null;
  /** The given values that belong in the vault, by the credential's name. */
  readonly credentials: readonly { readonly name: string; readonly value: string }[];
  readonly requiredCredentials: readonly RequiredCredential[];
  readonly warnings: readonly Danger[];
}

/** The texts for each input; if there are none, whatever needs the input is omitted. */
type Written = ReadonlyMap<string, readonly string[]>;

/**
 * Makes a server's configuration from its plan. A secret is never in it: `vault://mcp-servers/<serverId>/<NAME>` is written
 * in its place, also for a required one that is stored later. Refuses with every input that is missing or invalid.
 */
export function completeInstallation(
  plan: InstallationPlan,
  serverId: string,
  given: InputValues,
): Result<CompletedInstallation, readonly InputProblem[]> {
  const problems = inputProblems(plan, given);
  if (problems.length > 0) return err(problems);
  const values = inputValues(plan, given);
  const written = writeInputs(plan, serverId, values);
  const command: string[] = [];
  for (const argument of plan.command) {
    const words = argumentWords(argument, plan, written);
    if (!words.ok) return words;
    command.push(...words.value);
  }
  const env = fieldsOf(plan.env, written);
  const dangers = plan.mode === 'local' ? commandDangers(command, env) : [];
  const refusal = refusalOf(dangers);
  if (refusal !== null)
    return err([
      {
        input: findGuiltyInput(plan, values),
        code: 'invalid',
        message: `makes a command that is refused: the server ${refusal.message}`,
      },
    ]);
  const { mode, transport, version } = plan;
  const url = urlOf(plan, written);
  const headers = fieldsOf(plan.headers, written);
  const misplaced = referenceProblem({ id: serverId, command, env, url, headers });
  if (misplaced !== null)
    return err([{ input: findGuiltyInput(plan, values), code: 'invalid', message: `makes a reference: ${misplaced}` }]);
  const stored = {
    credentials: credentialsOf(plan, values),
    requiredCredentials: findLackingCredentials(plan, values),
  };
  return ok({ mode, command, env, url, transport, headers, version, ...stored, warnings: dangers });
}

function writeInputs(plan: InstallationPlan, serverId: string, values: Written): Written {
  const written = new Map<string, readonly string[]>();
  for (const input of plan.inputs) {
    const value = values.get(input.name);
    const isReferred = input.credential !== null && (value === undefined ? input.required : input.secret);
    if (isReferred) written.set(input.name, [mcpReference(serverId, input.credential)]);
    else if (value !== undefined) written.set(input.name, value);
  }
  return written;
}

function argumentWords(
  argument: PlanArgument,
  plan: InstallationPlan,
  written: Written,
): Result<readonly string[], readonly InputProblem[]> {
  const { flag, value, when, isJoined } = argument;
  if (when !== null) return ok(flag !== null && written.get(when)?.[0] === 'true' ? [flag] : []);
  if (value === null) return ok(flag === null ? [] : [flag]);
  const words: string[] = [];
  for (const text of textsOf(value, written)) {
    const toggled = flag === null ? null : toggle(flag, value, text, plan);
    const said = toggled ?? valueWords(flag, isJoined, value, text, plan);
    if (!said.ok) return said;
    words.push(...said.value);
  }
  return ok(words);
}

/** A boolean option without a format has no value: `true` writes it, `false` omits it. */
function toggle(
  flag: string,
  value: Template,
  text: string,
  plan: InstallationPlan,
): Result<readonly string[], never> | null {
  const [piece] = value;
  if (value.length !== 1 || piece?.kind !== 'input') return null;
  const input = plan.inputs.find(({ name }) => name === piece.input);
  if (input === undefined || input.format !== null || input.choices.length > 0 || input.secret) return null;
  if (text === 'true') return ok([flag]);
  return text === 'false' ? ok([]) : null;
}

/**
 * A value as one word. An input never becomes an option: after a long option it is joined to it, and elsewhere a value that
 * begins with `-` is refused unless it is a number. The publisher's own words stay unchanged.
 */
function valueWords(
  flag: string | null,
  isJoined: boolean,
  value: Template,
  text: string,
  plan: InstallationPlan,
): Result<readonly string[], readonly InputProblem[]> {
  const [first] = value;
  const isGiven = first?.kind === 'input';
  const isOption = isGiven && text.startsWith('-') && !/^-\d+(?:\.\d+)?$/.test(text);
  const mayJoin = flag !== null && flag.startsWith('--') && plan.ecosystem !== 'oci';
  if (isJoined || (isOption && mayJoin)) return ok([`${flag ?? ''}=${text}`]);
  if (isOption) {
    const message = 'begins with "-": it would be read as an option';
    return err([{ input: first.input, code: 'invalid', message }]);
  }
  return ok(flag === null ? [text] : [flag, text]);
}

/** The texts of a template: none if an input of it has no value, several if one is repeated. */
function textsOf(
  template: Template,
  written: Written,
  encode = (text: string, _isReference: boolean) => text,
): readonly string[] {
  let texts: readonly string[] = [''];
  for (const piece of template) {
    if (piece.kind === 'text') texts = texts.map((text) => text + piece.text);
    else {
      const values = written.get(piece.input) ?? [];
      texts = texts.flatMap((text) => values.map((value) => text + encode(value, value.startsWith('vault://'))));
    }
  }
  return texts;
}

function fieldsOf(fields: readonly PlanField[], written: Written): Readonly<Record<string, string>> {
  const entries = fields.flatMap(({ name, value }) => {
    const texts = textsOf(value, written);
    return texts.length === 0 ? [] : [[name, texts.join(',')] as const];
  });
  return Object.fromEntries(entries);
}

function urlOf(plan: InstallationPlan, written: Written): string | null {
  if (plan.url === null) return null;
  const part = (template: Template) => textsOf(template, written, encodeForUrl)[0] ?? '';
  const query = plan.url.query === null ? '' : `?${part(plan.url.query)}`;
  return `https://${part(plan.url.authority)}${part(plan.url.path)}${query}`;
}

/** Inputs are percent-encoded, so that none is more than a part of a path or query; references are filled in later. */
function encodeForUrl(text: string, isReference: boolean): string {
  return isReference ? text : encodeURIComponent(text);
}

function credentialsOf(plan: InstallationPlan, values: Written): CompletedInstallation['credentials'] {
  return plan.inputs.flatMap(({ name, secret, credential }) => {
    const [value] = values.get(name) ?? [];
    return secret && credential !== null && value !== undefined ? [{ name: credential, value }] : [];
  });
}

/** An optional credential is listed if it can still be stored, which needs a variable of its own. */
function findLackingCredentials(plan: InstallationPlan, values: Written): readonly RequiredCredential[] {
  const isOwnVariable = ({ credential }: PlanInput) =>
    plan.env.some(({ name, value }) => name === credential && value.length === 1);
  return plan.inputs.flatMap((input) => {
    const { credential, description, required, secret } = input;
    if (credential === null || values.has(input.name)) return [];
    const isListed = required || (secret && isOwnVariable(input));
    return isListed ? [{ name: credential, description, required, secret }] : [];
  });
}

/** The input to name for a refused command: one that is in its arguments. */
function findGuiltyInput(plan: InstallationPlan, values: Written): string {
  const given = plan.inputs.find(({ name, targets }) => targets.includes('argument') && values.has(name));
  return given?.name ?? plan.inputs[0]?.name ?? '';
}
