import { err, ok, type Result } from '../../model/result.ts';
import { quoteWord } from '../dangers/danger.ts';
import { dockerOptionDanger, dockerOptionTakesValue } from '../dangers/docker_options.ts';
import { fixedText, option, word, type NotInstallable, type PlanArgument } from '../install/plan.ts';
import type { PlanBuilder } from '../install/plan_builder.ts';
import { readOciReference } from '../oci_reference.ts';
import type { RegistryArgument } from '../registry/registry_input.ts';

/** The parts of an entry's docker arguments. */
interface DockerArguments {
  readonly options: readonly PlanArgument[];
  /** Arguments after the image's name, for its program. */
  readonly afterImage: readonly RegistryArgument[];
}

/** Words before the options of `docker run`. */
const COMMAND_WORDS = new Set(['docker', 'podman', 'container', 'run']);
const MOUNTS = new Set(['-v', '--volume', '--mount']);
/** Options that the derived command already has, and a terminal, which would break a stdio protocol. */
const IMPLIED = new Set(['-i', '--interactive', '--rm', '-t', '--tty', '-it', '-ti']);

/**
 * The docker options that an entry asks for. Options outside the allowed list are refused, because docker's options can open
 * the machine. A requested value is checked again once it is given.
 */
export function dockerArguments(
  list: readonly RegistryArgument[],
  repository: string,
  builder: PlanBuilder,
): Result<DockerArguments, NotInstallable> {
  const options: PlanArgument[] = [];
  const words = pairOptions(list);
  for (const [index, argument] of words.entries()) {
    const text = argument.type === 'named' ? argument.name : (argument.value ?? '');
    if (argument.type === 'positional' && isImage(text, repository)) {
      return ok({ options, afterImage: words.slice(index + 1) });
    }
    if (IMPLIED.has(text) || (argument.type === 'positional' && COMMAND_WORDS.has(text))) continue;
    const read = argument.type === 'named' ? dockerOption(argument, builder) : ok(null);
    if (!read.ok) return read;
    if (read.value !== null) options.push(...read.value);
    else if (isNeeded(argument)) return refuse(`the argument ${quoteWord(text)}, which docker has no place for`);
    else builder.warn('argument_ignored', `the argument ${quoteWord(text)} of docker is left out`);
  }
  return ok({ options, afterImage: [] });
}

/** The image itself, which publishers repeat with or without its registry host. */
function isImage(text: string, repository: string): boolean {
  const named = readOciReference(text)?.repository;
  return named !== undefined && withoutHost(named) === withoutHost(repository);
}

function withoutHost(repository: string): string {
  return repository.replace(/^[^/]*[.:][^/]*\//, '');
}

/** Null for an option that can and must be omitted. */
function dockerOption(
  argument: RegistryArgument,
  builder: PlanBuilder,
): Result<readonly PlanArgument[] | null, NotInstallable> {
  const takesValue = dockerOptionTakesValue(argument.name);
  const hasValue = argument.value !== null || argument.default !== null || argument.isRequired;
  if (takesValue === null) {
    return refuse(
      dockerOptionDanger(argument.name, argument.value)?.message ?? `the option ${quoteWord(argument.name)}`,
    );
  }
  if (!takesValue) return ok(argument.value === 'false' ? [] : [word(argument.name)]);
  if (!hasValue && argument.variables.length === 0) return ok(null);
  if (argument.name === '-e' || argument.name === '--env') return environmentOption(argument, builder);
  const flag = argument.name;
  const use = {
    target: 'argument',
    goesTo: `docker ${flag}`,
    name: flag.replace(/^-+/, ''),
    credentialName: null,
  } as const;
  const value = builder.inputs.valueOf(argument, use);
  const text = fixedText(value);
  const danger = text === null ? null : dockerOptionDanger(flag, text);
  if (danger?.severity === 'refuse') return refuse(danger.message);
  if (text === null && MOUNTS.has(flag)) {
    builder.warn('docker_mount', 'the directory that you name is opened to the program in the container');
  }
  return ok([option(flag, value)]);
}

/** `-e NAME=value` becomes a variable of the server, so that the value is not on the command line. */
function environmentOption(
  argument: RegistryArgument,
  builder: PlanBuilder,
): Result<readonly PlanArgument[], NotInstallable> {
  const match = /^([^={}]+)(?:=([^]*))?$/.exec(argument.value ?? '');
  const [, name, value] = match ?? [];
  if (name === undefined) return refuse('a variable for the container that has no name');
  const known = { ...argument, name, description: argument.description };
  const problem = builder.addEnvironment([value === undefined ? { ...known, value: null } : { ...known, value }]);
  return problem === null ? ok([]) : err(problem);
}

/** Splits options into name and value: publishers write `--name value` and `--name=value`. */
function pairOptions(list: readonly RegistryArgument[]): readonly RegistryArgument[] {
  const words: RegistryArgument[] = [];
  for (let index = 0; index < list.length; index += 1) {
    const argument = list[index];
    if (argument === undefined) continue;
    const named = toOption(argument);
    const next = list[index + 1];
    const lacksValue = named.value === null && named.default === null && named.variables.length === 0;
    const takesNext = named.type === 'named' && lacksValue && dockerOptionTakesValue(named.name) === true;
    if (takesNext && next?.type === 'positional') {
      words.push({ ...next, type: 'named', name: named.name });
      index += 1;
    } else words.push(named);
  }
  return words;
}

function toOption(argument: RegistryArgument): RegistryArgument {
  const text = argument.type === 'named' ? argument.name : (argument.value ?? '');
  if (!text.startsWith('-')) return argument;
  const equals = text.indexOf('=');
  if (equals < 0) return argument.type === 'named' ? argument : { ...argument, type: 'named', name: text, value: null };
  return { ...argument, type: 'named', name: text.slice(0, equals), value: text.slice(equals + 1) };
}

function isNeeded(argument: RegistryArgument): boolean {
  return argument.isRequired || (argument.type === 'positional' && argument.value !== null && argument.value !== '');
}

function refuse(problem: string): Result<never, NotInstallable> {
  const message = `Its entry ${problem.startsWith('the ') || problem.startsWith('a ') ? `has ${problem}` : problem}. It is not started so.`;
  return err({ reason: 'argument_not_allowed', message });
}
