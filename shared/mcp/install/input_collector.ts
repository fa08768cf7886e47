import type { InputFormat, RegistryInput, RegistryVariable } from '../registry/registry_input.ts';
import { credentialNameOf, isPlaceholder, namesSecret, makeUnique } from './input_names.ts';
import type { InputTarget, Piece, PlanInput, Template } from './plan.ts';

/** Where a value is used. */
export interface ValueUse {
  readonly target: InputTarget;
  /** For display: `variable API_KEY`. */
  readonly goesTo: string;
  /** The input's name if the publisher gives none. */
  readonly name: string;
  /** The required name of its credential, which is the variable's name; null if any name will do. */
  readonly credentialName: string | null;
}

/** An input before it has a name. */
interface Asked {
  readonly name: string;
  readonly variable: Omit<RegistryVariable, 'name' | 'value'>;
  readonly isRepeated: boolean;
  readonly mayBeReferred: boolean;
}

const VARIABLE = /\$?\{([A-Za-z_][\w.-]{0,127})\}/g;
const NAME_CHARACTER = /^[A-Za-z0-9_]/;

/** More inputs than a person can fill in, and than any real entry has; limits the work that an entry causes. */
export const MAX_INPUTS = 300;
const MAX_VARIABLES = 50;

/** Collects the inputs of one plan while its values are read. */
export class InputCollector {
  /** True if there were too many inputs; then the plan is not used. */
  isOverfull = false;
  readonly #inputs = new Map<string, PlanInput>();
  readonly #credentials = new Set<string>();

  get inputs(): readonly PlanInput[] {
    return [...this.#inputs.values()];
  }

  /** Reserves the name for an environment variable whose credential has the same name. */
  reserveCredential(name: string): void {
    this.#credentials.add(name);
  }

  /** The template of a fixed or requested value. A placeholder text is not a value: an input is requested for it. */
  valueOf(input: RegistryInput, at: ValueUse, isRepeated = false): Template {
    const { value } = input;
    if (value === null || value === '' || isPlaceholder(value)) {
      const required = input.isRequired || (value !== null && value !== '');
      return this.collectWhole(
        { ...input, isRequired: required, placeholder: input.placeholder ?? value },
        at,
        isRepeated,
      );
    }
    return (
      this.#templateOf(value, input, at) ??
      this.collectWhole({ ...input, isRequired: true, placeholder: value }, at, isRepeated)
    );
  }

  /** The template of a value that is one input. */
  collectWhole(variable: Omit<RegistryVariable, 'name' | 'value'>, at: ValueUse, isRepeated = false): Template {
    return [this.#ask({ name: at.name, variable, isRepeated, mayBeReferred: true }, at)];
  }

  /** A yes-or-no input, by name. */
  flag(input: RegistryVariable, at: ValueUse): string {
    const piece = this.#ask(
      { name: at.name, variable: { ...input, format: 'boolean' }, isRepeated: false, mayBeReferred: false },
      at,
    );
    return piece.kind === 'input' ? piece.input : '';
  }

  /** Text with `{variable}`s in it; null if a secret in it could not be separated from the following text. */
  templateOf(text: string, variables: readonly RegistryVariable[], isSecret: boolean, at: ValueUse): Template | null {
    return this.#templateOf(text, { variables, isSecret, isRequired: false }, at);
  }

  #templateOf(
    text: string,
    owner: Pick<RegistryInput, 'variables' | 'isSecret' | 'isRequired'>,
    at: ValueUse,
  ): Template | null {
    const matches = Array.from(text.matchAll(VARIABLE));
    if (matches.length > MAX_VARIABLES) this.isOverfull = true;
    if (this.isOverfull) return [];
    const follows = matches.map((match, index) => {
      const end = match.index + match[0].length;
      const isNextToInput = matches[index + 1]?.index === end;
      return isNextToInput || NAME_CHARACTER.test(text.slice(end));
    });
    const asked = matches.map((match, index) => askedOf(match[1] ?? '', owner, at, follows[index] !== true));
    if (asked.some(({ variable, mayBeReferred }) => variable.isSecret && !mayBeReferred)) return null;
    const pieces: Piece[] = [];
    let end = 0;
    for (const [index, match] of matches.entries()) {
      const one = asked[index];
      if (match.index > end) pieces.push({ kind: 'text', text: text.slice(end, match.index) });
      if (one !== undefined) pieces.push(this.#ask(one, at));
      end = match.index + match[0].length;
    }
    if (end < text.length) pieces.push({ kind: 'text', text: text.slice(end) });
    return pieces;
  }

  /** Variables of a template with the same description are one input; every other input is separate. */
  #ask(asked: Asked, at: ValueUse): Piece {
    const { variable, name } = asked;
    if (this.#inputs.size >= MAX_INPUTS) this.isOverfull = true;
    if (this.isOverfull) return { kind: 'text', text: '' };
    const known = this.#inputs.get(name);
    const isSame =
      known !== undefined && known.description === variable.description && known.format === variable.format;
    const isShared = isSame && name !== at.name && known.secret === variable.isSecret;
    if (isShared) {
      const goesTo = [...new Set([...known.goesTo, at.goesTo])];
      const targets = [...new Set([...known.targets, at.target])];
      const credential = asked.mayBeReferred && mayRefer(known.secret, targets) ? known.credential : null;
      this.#inputs.set(name, {
        ...known,
        goesTo,
        targets,
        credential,
        required: known.required || variable.isRequired,
      });
      return { kind: 'input', input: name };
    }
    const input = this.#newInput(asked, at);
    this.#inputs.set(input.name, input);
    return { kind: 'input', input: input.name };
  }

  #newInput({ name, variable, isRepeated, mayBeReferred }: Asked, at: ValueUse): PlanInput {
    const secret = variable.isSecret || namesSecret(name) || (name === at.name && namesSecret(at.goesTo));
    const given = variable.default !== null && variable.default !== '' && !isPlaceholder(variable.default);
    return {
      name: makeUnique(name, '-', new Set(this.#inputs.keys())),
      description: variable.description,
      required: variable.isRequired,
      secret,
      format: secret ? 'string' : variable.format,
      default: given ? variable.default : null,
      placeholder: variable.placeholder,
      choices: variable.choices,
      isRepeated: isRepeated && !secret,
      goesTo: [at.goesTo],
      targets: [at.target],
      credential:
        mayBeReferred && mayRefer(secret, [at.target]) && (secret || !isRepeated) ? this.#credential(name, at) : null,
    };
  }

  #credential(name: string, at: ValueUse): string {
    if (at.credentialName !== null && name === at.name) return at.credentialName;
    const credential = credentialNameOf(name, this.#credentials);
    this.#credentials.add(credential);
    return credential;
  }
}

/** A value that the configuration can do without: every secret, and inputs used only in the environment or a header. */
function mayRefer(secret: boolean, targets: readonly InputTarget[]): boolean {
  if (targets.includes('url_host') || targets.includes('url_path')) return false;
  return secret || targets.every((target) => target === 'env' || target === 'header');
}

/** A variable that a template uses but does not declare is a required input. */
function askedOf(
  name: string,
  owner: Pick<RegistryInput, 'variables' | 'isSecret' | 'isRequired'>,
  at: ValueUse,
  mayBeReferred: boolean,
): Asked {
  const declared = owner.variables.find((variable) => variable.name === name);
  const format: InputFormat | null = null;
  const undeclared = {
    description: '',
    isRequired: true,
    isSecret: false,
    format,
    default: null,
    placeholder: null,
    choices: [],
  };
  const known = declared ?? undeclared;
  const isSecret =
    known.isSecret || namesSecret(name) || (owner.isSecret && declared === undefined) || isAuthorization(at);
  const fixed = declared?.value ?? null;
  const variable = {
    ...known,
    isSecret,
    isRequired: known.isRequired || owner.isRequired,
    default: fixed ?? known.default,
  };
  return { name, variable, isRepeated: false, mayBeReferred };
}

function isAuthorization(at: ValueUse): boolean {
  return at.target === 'header' && /^(?:proxy-)?(?:authorization|authentication)$/i.test(at.name);
}
