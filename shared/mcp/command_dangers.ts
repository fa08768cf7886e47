import { quoteWord, refuse, markUnchecked, warn, type Danger } from './dangers/danger.ts';
import { readDockerRun } from './dangers/docker_options.ts';
import { environmentDangers } from './dangers/environment_dangers.ts';
import { interpreterDangers, isInterpreter } from './dangers/interpreters.ts';
import { isPackageRunner, packageRunnerDangers } from './dangers/package_runners.ts';
import { baseName, fileName, isContainerRuntime, isLauncher, isShell } from './dangers/program_names.ts';
import { imageDangers } from './dangers/unchecked_packages.ts';
import { isPinnedOci, readOciReference } from './oci_reference.ts';
import { hasReference } from './references.ts';
import { listHiddenCharacters } from '../model/shown_text.ts';

/** The longest command that is checked; a longer one is refused. */
const MAX_COMMAND_WORDS = 256;
const MAX_COMMAND_WORD = 4_096;

/** The allowed nesting of runners; deeper nesting is refused. */
const MAX_NESTING = 4;

/**
 * What is wrong with the command of a local server. `refuse`: never stored and never started. `unchecked`: needs its own
 * consent on each machine. `warn`: is shown.
 *
 * A refusal stops commands that hide the program they run (a shell line, code in an argument, a package from anywhere) and
 * options that open the machine (docker's options, variables that load code). Known launchers pass with their known
 * subcommands, options and variables; everything else is unchecked, whatever its name. This does not judge a package or a
 * script: consent decides whether it may run.
 */
export function commandDangers(command: readonly string[], env: Readonly<Record<string, string>>): readonly Danger[] {
  return [...textDangers(command), ...programDangers(command, 0), ...environmentDangers(env)];
}

/** The first danger that is a refusal; null if the command may be stored and started. */
export function refusalOf(dangers: readonly Danger[]): Danger | null {
  return dangers.find((danger) => danger.severity === 'refuse') ?? null;
}

/** Why a command runs unchecked code, each as a predicate; empty if it does not. */
export function listUncheckedReasons(dangers: readonly Danger[]): readonly string[] {
  return dangers.filter(({ severity }) => severity === 'unchecked').map(({ message }) => message);
}

function programDangers(command: readonly string[], depth: number): readonly Danger[] {
  const [program = '', ...args] = command;
  const path = depth === 0 ? programPathDanger(program) : findStartedNameDanger(program);
  if (path !== null) return [path];
  if (depth >= MAX_NESTING) return [refuse('launcher', 'starts a program through too many others; name it itself')];
  const name = baseName(program);
  if (isShell(name)) {
    return [
      refuse('shell', `starts the shell ${quoteWord(program)}; name the program itself, with its arguments as a list`),
    ];
  }
  if (isLauncher(name)) {
    return [
      refuse(
        'launcher',
        `starts ${quoteWord(program)}, which runs or fetches what its arguments say; name the server's program itself`,
      ),
    ];
  }
  return [...spellingDangers(program, name), ...launcherDangers(name, args, depth)];
}

function launcherDangers(name: string, args: readonly string[], depth: number): readonly Danger[] {
  if (isContainerRuntime(name)) return containerDangers(name, args);
  if (isInterpreter(name) && !isBunx(name, args)) return interpreterDangers(name, args);
  if (isBunx(name, args) || isPackageRunner(name)) return runnerDangers(name, args, depth);
  return [markUnchecked(`starts ${quoteWord(name)}, a program that is no launcher known here`)];
}

/** A launcher is known under its own name: another case, or a version where it has none, may be another program. */
function spellingDangers(program: string, name: string): readonly Danger[] {
  const file = fileName(program);
  if (file === name || /^rscript$/i.test(file)) return [];
  if (file === file.toLowerCase() && isInterpreter(name)) return [];
  return [markUnchecked(`starts ${quoteWord(program)}, which may be another program than ${name}`)];
}

function runnerDangers(name: string, args: readonly string[], depth: number): readonly Danger[] {
  const [runner, rest] = isBunx(name, args) ? ['bunx', args.slice(1)] : [name, args];
  return packageRunnerDangers(runner, rest, (inner) => programDangers(inner, depth + 1)) ?? [];
}

function isBunx(name: string, args: readonly string[]): boolean {
  return name === 'bun' && args[0] === 'x';
}

function containerDangers(runtime: string, args: readonly string[]): readonly Danger[] {
  const words = args[0] === 'container' ? args.slice(1) : args;
  if (words[0] !== 'run') {
    return [
      refuse(
        'docker_command',
        `starts ${runtime} with ${quoteWord(words[0] ?? '')}; a server is started with "${runtime} run"`,
      ),
    ];
  }
  const { run, dangers } = readDockerRun(words.slice(1));
  if (run === null) return dangers;
  const image = readOciReference(run.image);
  if (image === null)
    return [...dangers, refuse('docker_command', `runs ${quoteWord(run.image)}, which is not an image name`)];
  const more = imageDangers(run.image, run.args, (name) => isInterpreter(name) || isPackageRunner(name));
  if (isPinnedOci(image)) return [...dangers, ...more];
  const message = `runs the image ${quoteWord(run.image)} without a version: it can be other code tomorrow; add a tag or a digest`;
  return [...dangers, ...more, warn('unpinned_version', message)];
}

/** A bare name or an absolute path, never one that depends on the gateway's working directory. */
function programPathDanger(program: string): Danger | null {
  if (program === '') return refuse('program_path', 'names no program');
  if (!/^[\w./\\:@+~ ()-]+$/u.test(program) || /^[-~ ]/.test(program)) {
    return refuse(
      'program_path',
      `starts ${quoteWord(program)}; write the plain name or the absolute path of a program`,
    );
  }
  const isAbsolute = /^(?:\/(?!\/)|[a-z]:[\\/])/i.test(program);
  if (!isAbsolute && !/^[\w.@+-]+$/.test(program)) {
    return refuse(
      'program_path',
      `starts ${quoteWord(program)}, a path that depends on the directory; write an absolute one`,
    );
  }
  if (program.split(/[\\/]/).includes('..') || program === '.' || program === '..') {
    return refuse('program_path', `starts ${quoteWord(program)}, whose ".." hides what it is; write the path itself`);
  }
  if (/^\/(?:proc|dev)\//.test(program))
    return refuse('program_path', `starts ${quoteWord(program)}, which is no program`);
  if (/\.(?:bat|cmd|ps1|vbs|lnk)$/i.test(program)) {
    return refuse(
      'shell',
      `starts ${quoteWord(program)}, a script that a shell of the system runs; name the program that it starts`,
    );
  }
  return null;
}

/** A runner must start a literal name or path, which no credential stored later can change. */
function findStartedNameDanger(program: string): Danger | null {
  if (!hasReference(program) && /^[\w./\\:@+~-]+$/.test(program) && !/^[-~]/.test(program)) return null;
  return refuse('program_path', `has its runner start ${quoteWord(program)}; write the plain name of a program`);
}

function textDangers(command: readonly string[]): readonly Danger[] {
  if (command.length > MAX_COMMAND_WORDS)
    return [refuse('bad_text', `has ${command.length} words, more than ${MAX_COMMAND_WORDS}`)];
  if (command.some((word) => word.length > MAX_COMMAND_WORD)) {
    return [refuse('bad_text', `has a word of more than ${MAX_COMMAND_WORD} characters`)];
  }
  const dangers: Danger[] = [];
  if (command.some((word) => /[\0\p{Cs}]/u.test(word)))
    dangers.push(refuse('bad_text', 'has a character that no argument can have'));
  const hidden = [...new Set(command.flatMap((word) => listHiddenCharacters(word)))];
  if (hidden.length > 0) {
    dangers.push(
      warn('hidden_characters', `has hidden characters (${hidden.join(', ')}): it is not what it looks like`),
    );
  }
  if (command.some(hasReference)) {
    dangers.push(
      warn(
        'secret_in_arguments',
        'has a secret among its arguments, which every program of this machine can list; use a variable if the server takes one',
      ),
    );
  }
  return dangers;
}
