import {
  interpreterNamed,
  isInterpreter,
  isModuleThatRunsCode,
  type Interpreter,
} from '../../shared/mcp/dangers/interpreters.ts';
import { baseName, isLauncher, isShell } from '../../shared/mcp/dangers/program_names.ts';

/** A program that runs the text of an argument, and the option before that text. */
export interface InlineCode {
  readonly program: string;
  readonly option: string;
}

const SHELL = /^(?:-[A-Za-z]*c|--command(?:=|$))/;
/** `-ep` and `-ex...` are the policy for scripts. */
const POWERSHELL = /^-(?:c|e(?![px]))/i;
const NODE = /^(?:-(?:e|p|pe|ep)$|--(?:eval|print)(?:=|$))/;
const BUN = /^(?:-(?:e|p|pe|ep)$|--(?:eval|print)(?:=|$)|exec$)/;
const PYTHON = /^-(?![XWmQ])[A-Za-z]*c/;

/** By program name, without a version suffix: the options whose value is code. */
const OPTIONS: ReadonlyMap<string, RegExp> = new Map([
  ...['node', 'nodejs', 'tsx', 'ts-node', 'ts-node-esm'].map((name): [string, RegExp] => [name, NODE]),
  ['bun', BUN],
  ['hush', SHELL],
  ...['python', 'pypy', 'py'].map((name): [string, RegExp] => [name, PYTHON]),
  ['deno', /^(?:eval|repl)$/],
  ['fish', /^(?:-[A-Za-z]*[cC]|--(?:init-)?command(?:=|$))/],
  ['osascript', /^-e/],
  ['powershell', POWERSHELL],
  ['pwsh', POWERSHELL],
  ['perl', /^-(?![ImMx])[A-Za-z0-9]*[eE]/],
  ['ruby', /^-(?![IrECK])[A-Za-z]*e/],
  ['php', /^(?:-[rBRE]|--(?:run|process-(?:begin|code|end))(?:=|$))/],
  ['lua', /^-e/],
  ['luajit', /^-e/],
  ['rscript', /^-e/],
  ['julia', /^(?:-[eE]|--(?:eval|print)(?:=|$))/],
  ['guile', /^-c/],
  ['elixir', /^(?:-e$|--(?:eval|rpc-eval)(?:=|$))/],
  ['groovy', /^-e/],
  ['expect', /^-[A-Za-z]*c/],
]);

const AWK: ReadonlySet<string> = new Set(['awk', 'gawk', 'mawk', 'nawk']);
const AWK_FILE = /^(?:-[fE]|--(?:file|exec)(?:=|$))/;
const AWK_SOURCE = /^(?:-e|--source)/;
const VALUES_OF_AWK: ReadonlySet<string> = new Set(['-F', '-v', '--field-separator', '--assign']);

/** Programs whose first argument is the name of one that they contain. */
const BOXES: ReadonlySet<string> = new Set(['busybox', 'toybox']);

/** A launcher that can take a shell's line instead of a program. */
interface LineLauncher {
  /** The option before the line. */
  readonly line: RegExp;
  /** The options whose next word is their value. */
  readonly withValue: readonly string[];
  /** The words ahead of the program that it starts: a file to lock or to write. */
  readonly operands: number;
}

const SU: LineLauncher = {
  line: /^(?:-[A-Za-z]*c|--(?:session-)?command(?:=|$))/,
  withValue: '-w --whitelist-environment -g --group -G --supp-group -s --shell -u --user'.split(' '),
  // All words behind the user's name are a shell's.
  operands: Number.POSITIVE_INFINITY,
};
const LINE_LAUNCHERS: ReadonlyMap<string, LineLauncher> = new Map([
  [
    'flock',
    {
      line: /^(?:-[A-Za-z]*c$|--command(?:=|$))/,
      withValue: '-w --wait --timeout -E --conflict-exit-code'.split(' '),
      operands: 1,
    },
  ],
  [
    'script',
    {
      line: /^(?:-[A-Za-z]*c|--command(?:=|$))/,
      withValue: '-E --echo -I --log-in -O --log-out -B --log-io -T --log-timing -o --output-limit -m'.split(' '),
      operands: 1,
    },
  ],
  ['su', SU],
  ['runuser', SU],
]);
/** `env -S` splits a text into a program and its arguments. */
const SPLIT = /^(?:-[A-Za-z0]*S|--split-string(?:=|$))/;

/**
 * The first program of a command, behind launchers such as `env` too, that is told its code by an argument; null if there is none. Words
 * behind a script are the script's.
 */
export function findInlineCode(program: string, args: readonly string[]): InlineCode | null {
  const name = baseName(program);
  if (BOXES.has(name)) {
    const inner = findInlineCode(args[0] ?? '', args.slice(1));
    return inner && { ...inner, program };
  }
  const form = OPTIONS.get(name) ?? (isShell(name) ? SHELL : undefined);
  if (form !== undefined) return findOption(program, args, { form, ...startOf(name) });
  if (AWK.has(name)) return findAwkText(program, args);
  const launcher = LINE_LAUNCHERS.get(name);
  if (launcher !== undefined) return findShellLine(program, args, launcher);
  if (isInterpreter(name) || !isLauncher(name)) return null;
  if (name === 'env') {
    const split = args.find((word) => SPLIT.test(word));
    if (split !== undefined) return { program, option: split.slice(0, 2) };
  }
  return findLaunched(args);
}

function findLaunched(args: readonly string[]): InlineCode | null {
  const at = args.findIndex((word) => {
    const launched = baseName(word);
    return isShell(launched) || isLauncher(launched) || OPTIONS.has(launched);
  });
  return at < 0 ? null : findInlineCode(args[at] ?? '', args.slice(at + 1));
}

/** The text of `awk` is its first argument, unless a file has it. */
function findAwkText(program: string, args: readonly string[]): InlineCode | null {
  for (let index = 0; index < args.length; index += 1) {
    const word = args[index] ?? '';
    if (AWK_SOURCE.test(word)) return found(program, word);
    if (AWK_FILE.test(word)) return null;
    if (VALUES_OF_AWK.has(word)) index += 1;
    else if (!word.startsWith('-')) return { program, option: '(its text)' };
  }
  return null;
}

function findShellLine(
  program: string,
  args: readonly string[],
  { line, withValue, operands }: LineLauncher,
): InlineCode | null {
  // `runuser -u USER` starts a program.
  const most = baseName(program) === 'runuser' && args.some((word) => /^(?:-u|--user)/.test(word)) ? 0 : operands;
  let count = 0;
  for (let index = 0; index < args.length && count <= most; index += 1) {
    const word = args[index] ?? '';
    if (line.test(word)) return found(program, word);
    if (withValue.includes(word)) index += 1;
    else if (!word.startsWith('-')) count += 1;
  }
  return findLaunched(args);
}

function found(program: string, word: string): InlineCode {
  return { program, option: /^[-+]\w|^--\w+|^\w+/.exec(word)?.[0] ?? word };
}

type Start = Pick<Interpreter, 'plain' | 'withValue' | 'module' | 'subcommands'>;

const NO_WORDS = { withValue: [], module: [], subcommands: [] } as const;
const SHELL_START: Start = {
  ...NO_WORDS,
  plain:
    /^(?:-[abefhiklmnprtuvxBCEHPT]+|--(?:norc|noprofile|posix|login|restricted|verbose)|[-+][oO]|--(?:rcfile|init-file))$/,
  withValue: ['-o', '+o', '-O', '+O', '--rcfile', '--init-file'],
};
const POWERSHELL_START: Start = {
  ...NO_WORDS,
  plain: /^-(?:no(?:profile|logo|exit)|noninteractive|mta|sta|file|f|ep|executionpolicy)$/i,
  withValue: ['-ep', '-ExecutionPolicy', '-executionpolicy'],
};
const OTHER_STARTS: ReadonlyMap<string, Start> = new Map([
  ['powershell', POWERSHELL_START],
  ['pwsh', POWERSHELL_START],
  ['expect', { ...NO_WORDS, plain: /^-[fnNi]$/ }],
  ['osascript', { ...NO_WORDS, plain: /^-[l]$/, withValue: ['-l'] }],
]);

function startOf(name: string): Start {
  return interpreterNamed(name) ?? OTHER_STARTS.get(name) ?? SHELL_START;
}

/** Words of `node` behind which its options go on. */
const DEBUGGERS: ReadonlySet<string> = new Set(['inspect', 'debug']);

/** A module or a script that a URL holds: `data:text/javascript,...`, also as the value of an option. */
const DATA = /^(?:-[^=]*=)?data:/i;

/**
 * Looks for the option up to the script, whose words come behind it. An option that is not known may have the next word as its
 * value: the script may come later then.
 */
function findOption(
  program: string,
  args: readonly string[],
  { form, plain, withValue, module, subcommands }: Start & { readonly form: RegExp },
): InlineCode | null {
  let mayBeValue = false;
  for (let index = 0; index < args.length; index += 1) {
    const word = args[index] ?? '';
    if (form.test(word) || DATA.test(word)) return found(program, word);
    if (module.includes(word)) return isModuleThatRunsCode(args[index + 1] ?? '') ? found(program, word) : null;
    if (withValue.includes(word)) {
      index += 1;
      mayBeValue = false;
    } else if (word.startsWith('-') || word.startsWith('+')) mayBeValue = !word.includes('=') && !plain.test(word);
    else if (index > 0 || !(subcommands.includes(word) || DEBUGGERS.has(word))) {
      if (!mayBeValue) return null;
      mayBeValue = false;
    }
  }
  return null;
}
