import { err, ok, type Result } from '../../model/result.ts';
import { findVariableRefusal } from '../dangers/environment_dangers.ts';
import { quoteWord } from '../dangers/danger.ts';
import type { RegistryArgument, RegistryInput } from '../registry/registry_input.ts';
import { InputCollector, type ValueUse } from './input_collector.ts';
import type { NotInstallable, PlanArgument, PlanField, PlanWarning, Template } from './plan.ts';

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
/** Headers that belong to HTTP or the protocol. */
const OWN_HEADERS =
  /^(?:mcp-.*|accept|accept-encoding|content-type|content-length|last-event-id|origin|host|connection|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*|cookie|set-cookie|forwarded|x-forwarded-.*|via)$/i;
/** The name of an option: dashes, then a letter or digit, and always one word. */
const FLAG = /^-{0,2}[A-Za-z0-9][\w.:@/-]*=?$/;

/** Collects the parts of a plan: inputs, variables, headers, warnings. */
export class PlanBuilder {
  readonly inputs = new InputCollector();
  readonly warnings: PlanWarning[] = [];
  readonly env: PlanField[] = [];

  warn(code: PlanWarning['code'], message: string): void {
    this.warnings.push({ code, message });
  }

  /** The variables of a package. One that no server may get is omitted, unless the package requires it. */
  addEnvironment(variables: readonly RegistryInput[]): NotInstallable | null {
    for (const variable of variables) this.inputs.reserveCredential(variable.name);
    for (const variable of variables) {
      const problem = variableProblem(variable.name);
      if (problem === null) this.addVariable(variable);
      else if (variable.isRequired) {
        const message = `It needs the variable ${quoteWord(variable.name)}, which ${problem}. Add the server by hand if it can do without.`;
        return { reason: 'variable_not_allowed', message };
      } else this.warn('variable_ignored', `the variable ${quoteWord(variable.name)} is left out: it ${problem}`);
    }
    return null;
  }

  addVariable(variable: RegistryInput): void {
    if (this.env.some(({ name }) => name === variable.name)) return;
    const use = {
      target: 'env',
      goesTo: `variable ${variable.name}`,
      name: variable.name,
      credentialName: variable.name,
    } as const;
    this.env.push({ name: variable.name, value: this.inputs.valueOf(variable, use) });
  }

  /** The headers of a remote server. */
  headersOf(headers: readonly RegistryInput[]): Result<readonly PlanField[], NotInstallable> {
    const fields: PlanField[] = [];
    const seen = new Set<string>();
    for (const header of headers) {
      const isTwin = seen.has(header.name.toLowerCase());
      seen.add(header.name.toLowerCase());
      const problem = isTwin ? 'is there twice' : headerProblem(header);
      if (problem === null) {
        const use = {
          target: 'header',
          goesTo: `header ${header.name}`,
          name: header.name,
          credentialName: null,
        } as const;
        fields.push({ name: header.name, value: this.inputs.valueOf(header, use) });
      } else if (header.isRequired && !isTwin) {
        return err({
          reason: 'header_not_allowed',
          message: `It needs the header ${quoteWord(header.name)}, which ${problem}.`,
        });
      } else this.warn('header_ignored', `the header ${quoteWord(header.name)} is left out: it ${problem}`);
    }
    return ok(fields);
  }

  /** Arguments for the package's own program. */
  argumentsOf(list: readonly RegistryArgument[]): Result<readonly PlanArgument[], NotInstallable> {
    const words: PlanArgument[] = [];
    for (const argument of list) {
      const read = argument.type === 'named' ? this.#readNamed(argument) : ok(this.#readPositional(argument));
      if (!read.ok) return read;
      if (read.value !== null) words.push(read.value);
    }
    return ok(words);
  }

  #readPositional(argument: RegistryArgument): PlanArgument {
    const name =
      argument.valueHint === null || !/^[\w.-]{1,64}$/.test(argument.valueHint) ? 'argument' : argument.valueHint;
    const use = argumentUse(name, `argument ${name}`);
    return {
      flag: null,
      isJoined: false,
      value: this.inputs.valueOf(argument, use, argument.isRepeated),
      when: null,
    };
  }

  #readNamed(argument: RegistryArgument): Result<PlanArgument | null, NotInstallable> {
    if (!FLAG.test(argument.name)) return this.#oddName(argument);
    const isJoined = argument.name.endsWith('=');
    const flag = addDashes(isJoined ? argument.name.slice(0, -1) : argument.name);
    const use = argumentUse(flag.replace(/^-+/, ''), `argument ${flag}`);
    const { value } = argument;
    // Older entries repeat the option as its value.
    if (value === argument.name) return ok({ flag, isJoined: false, value: null, when: null });
    if (argument.format === 'boolean' && value !== null) {
      return ok(value === 'false' ? null : { flag, isJoined: false, value: null, when: null });
    }
    if (argument.format === 'boolean') {
      return ok({ flag, isJoined: false, value: null, when: this.inputs.flag(argument, use) });
    }
    const template: Template = this.inputs.valueOf(argument, use, argument.isRepeated);
    return ok({ flag, isJoined, value: template, when: null });
  }

  #oddName(argument: RegistryArgument): Result<null, NotInstallable> {
    const isNeeded = argument.isRequired || argument.value !== null;
    const why = /\s/.test(argument.name)
      ? 'several words in one, without saying where it ends'
      : 'which is not an option name';
    const problem = `${quoteWord(argument.name)}, ${why}`;
    if (isNeeded) {
      const message = `It is started with the argument ${problem}. Add the server by hand with the arguments that you mean.`;
      return err({ reason: 'argument_not_allowed', message });
    }
    this.warn('argument_ignored', `the argument ${problem}, is left out`);
    return ok(null);
  }
}

/** Many publishers write an option's name without its dashes. */
function addDashes(name: string): string {
  if (name.startsWith('-')) return name;
  return name.length === 1 ? `-${name}` : `--${name}`;
}

function argumentUse(name: string, goesTo: string): ValueUse {
  return { target: 'argument', goesTo, name, credentialName: null };
}

function variableProblem(name: string): string | null {
  if (!VARIABLE_NAME.test(name)) return 'is not a variable name';
  return findVariableRefusal(name);
}

function headerProblem({ name, value }: RegistryInput): string | null {
  if (!HEADER_NAME.test(name)) return 'is not a header name';
  if (OWN_HEADERS.test(name)) return 'belongs to the protocol';
  const isPlain = value === null || (/^[ -~]*$/.test(value) && value.trim() === value);
  return isPlain ? null : 'has a value that no header can have';
}
