import { quoteWord, refuse, markUnchecked, warn, type Danger } from './danger.ts';
import { isNodeOption } from './interpreters.ts';
import { isPlainVariable } from './unchecked_variables.ts';
import { listHiddenCharacters } from '../../model/shown_text.ts';

/**
 * Variables that load code, choose a program, or change the servers that code comes from, by their effect. Compared in upper
 * case, because some systems ignore case.
 */
const REFUSED: readonly (readonly [RegExp, string])[] = [
  [/^(?:LD|DYLD)_|^GLIBC_TUNABLES$|^GCONV_PATH$|^LOCPATH$|^MALLOC_/, 'changes what the system loads into programs'],
  [/^(?:PATH|PATHEXT|COMSPEC|SHELL|SYSTEMROOT|WINDIR)$/, 'chooses which program a name stands for'],
  [/^(?:BASH_ENV|SHELLOPTS|BASHOPTS|PS4|IFS|CDPATH|PROMPT_COMMAND|ZDOTDIR)$|^BASH_FUNC_/, 'is code to shells'],
  [/^(?:EDITOR|VISUAL|PAGER|BROWSER|LESSOPEN|LESSCLOSE|MANPAGER)$/, 'names a program that others start'],
  [/^NODE_(?:PATH|REPL_EXTERNAL_MODULE|CHANNEL_FD|UNIQUE_ID)$/, 'loads code into node'],
  [
    /^PYTHON(?!UNBUFFERED$|IOENCODING$|UTF8$|DONTWRITEBYTECODE$|HASHSEED$|FAULTHANDLER$|ASYNCIODEBUG$)/,
    'changes what python loads',
  ],
  [
    /^(?:PERL5OPT|PERL5LIB|PERLLIB|PERL5DB|RUBYOPT|RUBYLIB|LUA_INIT|LUA_PATH|LUA_CPATH|PHPRC|PHP_INI_SCAN_DIR)(?:_|$)/,
    'loads code into an interpreter',
  ],
  [/^R_(?:PROFILE|ENVIRON|LIBS)|^GEM_|^BUNDLE_|^COMPOSER_/, 'changes where an interpreter loads code from'],
  [/^(?:JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|MAVEN_OPTS|GRADLE_OPTS)$/, 'loads code into java'],
  [
    /^(?:RUST(?:C|DOC|UP|FLAGS)|CGO_|GO(?:ENV|ROOT|PATH|WORK|TOOLCHAIN|CACHEPROG)$)/,
    'changes what a compiler runs, or puts into the program',
  ],
  [/^(?:DOTNET_(?:STARTUP_HOOKS|ADDITIONAL_DEPS|SHARED_STORE|ROOT)|(?:CORECLR|COR)_)/, 'loads code into .NET'],
  [
    /^(?:NPM_CONFIG|PNPM|YARN|BUN|DENO|COREPACK|UV|PIP|PIPX|NUGET|CARGO|NIX|GO(?:PROXY|FLAGS|SUMDB|NOSUMDB|NOPROXY|PRIVATE|INSECURE|VCS|AUTH))(?:_|$)/,
    'changes where packages come from',
  ],
  [
    /^(?:DOCKER_(?:HOST|CONFIG|CONTEXT|CERT_PATH|TLS|BUILDKIT|DEFAULT|CONTENT_TRUST)|CONTAINER_(?:HOST|SSHKEY|CONNECTION)|CONTAINERS_|BUILDKIT_|COMPOSE_|PODMAN_)/,
    'changes which container runtime is used, and how',
  ],
  [
    /^GIT_(?:SSH|EXEC_PATH|CONFIG|ASKPASS|EDITOR|PAGER|PROXY|EXTERNAL|TEMPLATE|SEQUENCE|DIR$|WORK_TREE|ALTERNATE|OBJECT|SSL_NO_VERIFY|TRACE|ALLOW_PROTOCOL)/,
    'changes what git runs and where',
  ],
  [
    /^(?:SSH_ASKPASS|SUDO_ASKPASS|SSH_AUTH_SOCK|GPG_AGENT_INFO)$/,
    'opens the credentials of the user, or names a program to ask for them',
  ],
  [/^(?:OPENSSL_(?:CONF|MODULES|ENGINES)|SSLKEYLOGFILE)/, 'loads code into TLS, or writes its keys to a file'],
  [
    /^(?:HOME|USERPROFILE|APPDATA|LOCALAPPDATA|XDG_[A-Z_]+|TMPDIR|TEMP|TMP)$/,
    'is set by the gateway, which gives each server a directory of its own',
  ],
  [/^SVC_/, 'belongs to the service'],
];

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Checks the variables that a server is started with. */
export function environmentDangers(env: Readonly<Record<string, string>>): readonly Danger[] {
  return Object.entries(env).flatMap(([name, value]) => variableDangers(name, value));
}

/** Why a variable with this name is never given to a server, as a predicate; null if it may be. */
export function findVariableRefusal(name: string): string | null {
  const upper = name.toUpperCase();
  return REFUSED.find(([pattern]) => pattern.test(upper))?.[1] ?? null;
}

function variableDangers(name: string, value: string): readonly Danger[] {
  if (!NAME.test(name)) {
    return [refuse('bad_text', `has the variable ${quoteWord(name)}, which is not a name of A-Z, a-z, 0-9 and "_"`)];
  }
  const reason = findVariableRefusal(name);
  if (reason !== null) return [refuse('environment_variable', `sets ${name}, which ${reason}; remove it`)];
  if (/[\0\p{Cs}]/u.test(value)) {
    return [refuse('bad_text', `sets ${name} to a value with a character that no variable can hold`)];
  }
  if (name.toUpperCase() === 'NODE_OPTIONS' && !value.split(/\s+/).every((word) => word === '' || isNodeOption(word))) {
    return [refuse('environment_variable', 'sets NODE_OPTIONS to options that can load code into node; remove it')];
  }
  if (name.toUpperCase() === 'NODE_TLS_REJECT_UNAUTHORIZED' && value === '0') {
    return [
      refuse(
        'environment_variable',
        'sets NODE_TLS_REJECT_UNAUTHORIZED, which switches off the check of certificates; remove it',
      ),
    ];
  }
  const unknown = isPlainVariable(name, value)
    ? []
    : [markUnchecked(`sets ${name}, which may load or choose code: it is not known as plain configuration`)];
  const hidden = listHiddenCharacters(value);
  if (hidden.length === 0) return unknown;
  return [
    ...unknown,
    warn('hidden_characters', `sets ${name} to a value with hidden characters (${hidden.join(', ')})`),
  ];
}
