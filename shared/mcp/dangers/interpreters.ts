import { readNpmSpec } from '../package_specs.ts';
import { hasReference } from '../references.ts';
import { quoteWord, refuse, markUnchecked, warn, type Danger } from './danger.ts';
import { packageNameDangers } from './unchecked_packages.ts';
import { moduleNameDangers, optionValueDangers, scriptNameDangers } from './unchecked_scripts.ts';

/** The allowed ways to start a server with an interpreter. */
export interface Interpreter {
  /** Options before the script that do not affect which code runs. All others are refused. */
  readonly plain: RegExp;
  /** Those of them whose value is the next word. */
  readonly withValue: readonly string[];
  /** Options whose next word is the module to run. */
  readonly module: readonly string[];
  /** Words that only announce a script. */
  readonly subcommands: readonly string[];
}

const NODE_OPTION =
  /^--(?:enable-source-maps|no-warnings|no-deprecation|trace-warnings|trace-uncaught|use-(?:system-ca|openssl-ca|bundled-ca|env-proxy)|experimental-(?:strip-types|transform-types|sqlite|fetch|vm-modules|json-modules)|no-experimental-[a-z-]+|max-(?:old-space-size|semi-space-size|http-header-size)=\d+|stack-trace-limit=\d+|disable-warning=[\w]+|dns-result-order=[\w]+|permission|unhandled-rejections=[\w-]+)$/;
const NOTHING = /^(?!)/;

const SCRIPTS_ONLY: Interpreter = { plain: NOTHING, withValue: [], module: [], subcommands: [] };
const TS_RUNNER: Interpreter = {
  plain: /^--(?:no-cache|esm|transpile-only|files|pretty|no-warnings)$|^-T$/,
  withValue: [],
  module: [],
  subcommands: [],
};
const PYTHON: Interpreter = {
  plain: /^-(?:[uBEIsSOqbdPv]+|X[a-z_=0-9]+|W[a-z]+|X|W)$/,
  withValue: ['-X', '-W'],
  module: ['-m'],
  subcommands: [],
};

/** Interpreters by program name, without a version suffix. */
const INTERPRETERS: ReadonlyMap<string, Interpreter> = new Map([
  ['node', { plain: NODE_OPTION, withValue: [], module: [], subcommands: [] }],
  ['nodejs', { plain: NODE_OPTION, withValue: [], module: [], subcommands: [] }],
  ['tsx', TS_RUNNER],
  ['ts-node', TS_RUNNER],
  ['ts-node-esm', TS_RUNNER],
  ['bun', { plain: /^--(?:bun|smol|silent|no-install)$/, withValue: [], module: [], subcommands: ['run'] }],
  [
    'deno',
    {
      plain:
        /^(?:-A|-q|--(?:allow|deny)-(?:all|net|env|read|write|run|sys|ffi|import)(?:=.*)?|--quiet|--no-prompt|--no-check|--no-config|--no-lock|--frozen|--cached-only|--node-modules-dir(?:=[a-z]+)?|--unstable-[a-z-]+)$/,
      withValue: [],
      module: [],
      subcommands: ['run', 'serve'],
    },
  ],
  ['python', PYTHON],
  ['pypy', PYTHON],
  ['py', { ...PYTHON, plain: /^-(?:[uBEIsSOqbdPv]+|\d(?:\.\d+)?)$/ }],
  ['perl', { ...SCRIPTS_ONLY, plain: /^-[wWT]+$/ }],
  ['ruby', { ...SCRIPTS_ONLY, plain: /^-(?:w|W\d?|U)$/ }],
  ['php', { ...SCRIPTS_ONLY, plain: /^-(?:q|n|f)$/ }],
  [
    'java',
    {
      ...SCRIPTS_ONLY,
      plain: /^-(?:jar|D[\w.-]+=.*|X(?:mx|ms|ss)\w+|server|cp|classpath|-add-opens=\S+|-enable-preview)$/,
      withValue: ['-cp', '-classpath'],
    },
  ],
  ['lua', SCRIPTS_ONLY],
  ['luajit', SCRIPTS_ONLY],
  ['rscript', { ...SCRIPTS_ONLY, plain: /^--(?:vanilla|no-save|no-restore|quiet)$/ }],
  ['julia', { ...SCRIPTS_ONLY, plain: /^--(?:project(?:=\S+)?|startup-file=no)$/ }],
  ['tclsh', SCRIPTS_ONLY],
  ['guile', SCRIPTS_ONLY],
  ['elixir', SCRIPTS_ONLY],
  ['groovy', SCRIPTS_ONLY],
]);

/** Python modules that run code from an argument, or install code. */
const MODULES_THAT_RUN_CODE =
  /^(?:code|codeop|timeit|pdb|trace|profile|cprofile|runpy|doctest|pip|ensurepip|venv|idlelib|easy_install|pty|this|pipx|uv|virtualenv|poetry|pdm|hatch|nox|tox|invoke|ipython|jupyter)(?:\.|$)/i;

/** First words that make the script an inline program or a shell line. */
const REFUSED_SUBCOMMANDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['node', ['inspect', 'debug']],
  ['nodejs', ['inspect', 'debug']],
  ['deno', ['eval', 'repl', 'task', 'install', 'upgrade', 'x', 'jupyter']],
  ['bun', ['repl', 'exec', 'install', 'add', 'upgrade', 'create', 'x']],
]);

/** True if the node option does not affect which code runs. */
export function isNodeOption(word: string): boolean {
  return NODE_OPTION.test(word);
}

/** How the interpreter is started, by {@link baseName}; null if it is none of these. */
export function interpreterNamed(program: string): Interpreter | null {
  return INTERPRETERS.get(program) ?? null;
}

/** True if the Python module runs code from an argument, or installs code. */
export function isModuleThatRunsCode(module: string): boolean {
  return MODULES_THAT_RUN_CODE.test(module);
}

/** True if the program, by {@link baseName}, runs code from a script or an argument. */
export function isInterpreter(program: string): boolean {
  return INTERPRETERS.has(program);
}

/**
 * Checks the words after an interpreter. Code in an argument is refused, because nobody can review or pin it. An unknown
 * option is refused too, because what follows it may be code.
 */
export function interpreterDangers(program: string, args: readonly string[]): readonly Danger[] {
  const interpreter = INTERPRETERS.get(program);
  if (interpreter === undefined) return [];
  const dangers: Danger[] = [];
  let isArchive = false;
  for (let index = 0; index < args.length; index += 1) {
    const word = args[index] ?? '';
    if (hasReference(word)) return [referenceDanger(program)];
    if (interpreter.module.includes(word)) return [...dangers, ...moduleDangers(program, args[index + 1] ?? '')];
    if (interpreter.withValue.includes(word)) {
      index += 1;
      if (hasReference(args[index] ?? '')) return [referenceDanger(program)];
      dangers.push(...optionValueDangers(program, word, args[index] ?? ''));
    } else if (!word.startsWith('-') && index === 0 && interpreter.subcommands.includes(word)) continue;
    else if (!word.startsWith('-')) return [...dangers, ...scriptDangers(program, word, index, isArchive)];
    else if (!interpreter.plain.test(word)) return [optionDanger(program, word)];
    else {
      isArchive ||= word === '-jar';
      dangers.push(...optionValueDangers(program, word, null));
    }
  }
  return [refuse('inline_code', `starts ${program} without a script, which then runs what it reads; name the script`)];
}

/** Otherwise whoever stores the credential would choose the code, after somebody consented to it. */
function referenceDanger(program: string): Danger {
  return refuse(
    'inline_code',
    `lets a credential say what ${program} runs; name the script, and put the credential behind it or into a variable`,
  );
}

function scriptDangers(program: string, script: string, index: number, isArchive: boolean): readonly Danger[] {
  if (index === 0 && REFUSED_SUBCOMMANDS.get(program)?.includes(script) === true) {
    return [refuse('inline_code', `starts "${program} ${script}", which runs code or a shell's line; name a script`)];
  }
  if (/^(?:https?|data|blob|ftp|file):/i.test(script)) {
    return [
      refuse(
        'remote_code',
        `runs ${quoteWord(script)}, code that its host can change at any time; install it and name the file`,
      ),
    ];
  }
  if (/^(?:npm|jsr):/i.test(script)) return packageDangers(script);
  // Java reads options from such a file.
  if (script.startsWith('@') || script.startsWith('/dev/') || script.startsWith('/proc/')) {
    return [refuse('inline_code', `runs ${quoteWord(script)}, which is no script; name a file`)];
  }
  // Java treats any other word as a class, possibly one of its own that runs what its arguments say.
  if (program === 'java' && !isArchive && !script.endsWith('.java')) {
    return [markUnchecked(`has java start the class ${quoteWord(script)}`)];
  }
  return scriptNameDangers(program, script, isInterpreter);
}

/** A package fetched by deno. */
function packageDangers(script: string): readonly Danger[] {
  const spec = readNpmSpec(script.slice('npm:'.length));
  if (spec === null) return [refuse('remote_code', `runs ${quoteWord(script)}, which is no package of a registry`)];
  const more = packageNameDangers('deno', script, isInterpreter);
  if (spec.isExact) return more;
  return [
    ...more,
    warn('unpinned_version', `runs ${quoteWord(script)} without an exact version: it can be other code tomorrow`),
  ];
}

function moduleDangers(program: string, module: string): readonly Danger[] {
  if (!/^[a-z_][\w.-]*$/i.test(module)) {
    return [refuse('inline_code', `starts "${program} -m" with ${quoteWord(module)}, which is not a module name`)];
  }
  if (!MODULES_THAT_RUN_CODE.test(module)) return moduleNameDangers(program, module);
  return [
    refuse(
      'inline_code',
      `starts the module ${quoteWord(module)}, which runs code that arguments hold, or installs it`,
    ),
  ];
}

function optionDanger(program: string, word: string): Danger {
  return refuse(
    'inline_code',
    `gives ${program} the option ${quoteWord(word)}, with which it can run other code than its script's; remove it`,
  );
}
