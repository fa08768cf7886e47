import { quoteWord, markUnchecked, type Danger } from './danger.ts';
import { baseName, isShell } from './program_names.ts';
import { plainPackageName, runsMore } from './unchecked_packages.ts';

/** Directories in which a system and its tools keep their own code, never a server's. */
const SYSTEM =
  /^(?:\/(?:usr(?!\/(?:local|src)\/)|lib|lib32|lib64|libexec|bin|sbin|etc|system|library|opt\/homebrew|home\/linuxbrew)\/|[a-z]:\\windows\\)/i;
/** Programs packed in one file that run what their arguments say: compilers, interpreters and package managers. */
const PACKED =
  /(?:^|[\\/])(?:fsi|fsc|csi|csc|vbc|msbuild|nuget|dotnet-[\w-]+|composer|phpunit|psysh|php-cs-fixer|groovy|jruby|jython|clojure|scala|kotlin|rhino|js|nashorn|graaljs|bsh|beanshell|kawa|abcl|frege|ammonite|jbang|ant|maven|gradle|ivy|coursier|h2|hsqldb|derby)[\w.-]*\.(?:dll|phar|jar|pyz|par)$/i;
const MODULE_FOLDER = /^(.*)[\\/](?:node_modules|site-packages|dist-packages)[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/;

/** Modules of Python's library and tools that are never a server, and that MODULES_THAT_RUN_CODE does not refuse. */
const MODULES_OF_NO_SERVER: ReadonlySet<string> = new Set(
  (
    'antigravity ast asyncio base64 bdb bpython calendar cgi cgitb compileall coverage cprofile ctypes curses dbm debugpy ' +
    'dis distutils django encodings ensurepip fabric fastmcp filecmp fileinput flask ftplib gunicorn gzip honcho http ' +
    'hypercorn imaplib importlib inspect ipykernel json kernprof lib2to3 locale marimo mcp mimetypes mypy nntplib notebook ' +
    'nuitka os pickle pickletools platform plistlib poplib ptpython py_compile pyclbr pydoc pyflyby pytest quopri random ' +
    'runpy sched scalene secrets select selectors shlex site smtpd smtplib sqlite3 ssl streamlit supervisor symtable ' +
    'sysconfig tabnanny tarfile telnetlib test tkinter tokenize tracemalloc turtle turtledemo unittest uuid uvicorn viztracer ' +
    'watchdog watchfiles watchmedo webbrowser wsgiref xml xmlrpc xonsh zipapp zipfile zipimport zoneinfo celery ansible doit ' +
    'plumbum execnet papermill nbconvert nbclient pexpect sh'
  ).split(' '),
);

/** Why a script's name is suspicious: its location, or because it is a tool that runs other code. */
export function scriptNameDangers(
  program: string,
  script: string,
  isProgram: (name: string) => boolean,
): readonly Danger[] {
  if (/^[a-z][a-z0-9+.-]+:/i.test(script)) {
    return [markUnchecked(`has ${program} run ${quoteWord(script)}, which is no file of this machine`)];
  }
  // A bare word is one of the interpreter's own commands, or is looked up in a search path.
  if (!/[\\/.]/.test(script))
    return [markUnchecked(`starts ${program} with ${quoteWord(script)}, which is not a file name`)];
  const [, , folder] = MODULE_FOLDER.exec(script) ?? [];
  const file = baseName(script.replace(/\.[a-z]+$/i, '').replace(/[-.](?:cli|bin|main|prefix)$/i, ''));
  const isTool = isShell(file) || isProgram(file);
  if (isTool || (folder !== undefined && runsMore(plainPackageName(folder.replaceAll('\\', '/')), isProgram)))
    return [markUnchecked(`has ${program} run ${quoteWord(script)}, which runs what its arguments say`)];
  if (PACKED.test(script))
    return [markUnchecked(`has ${program} run ${quoteWord(script)}, which runs what its arguments say`)];
  if (MODULES_OF_NO_SERVER.has(file) && /^\/.*\/python/i.test(script)) {
    return [markUnchecked(`has ${program} run ${quoteWord(script)}, a module of Python's own`)];
  }
  if (folder === undefined && SYSTEM.test(script)) {
    return [markUnchecked(`has ${program} run ${quoteWord(script)}, a file of the system`)];
  }
  return [];
}

/** A module of Python or of a tool that is not a server. */
export function moduleNameDangers(program: string, module: string): readonly Danger[] {
  const [first = ''] = module.toLowerCase().split('.');
  if (!MODULES_OF_NO_SERVER.has(first)) return [];
  return [markUnchecked(`starts "${program} -m ${module}", a module of Python or of a tool`)];
}

/** Java properties that are plain data to the programs that commonly read them. */
const JAVA_PROPERTY =
  /^-D(?:file\.encoding|sun\.(?:stdout|stderr)\.encoding|(?:stdout|stderr)\.encoding|user\.(?:timezone|language|country)|java\.awt\.headless|java\.net\.prefer(?:IPv4Stack|IPv6Addresses)|https?\.(?:proxyHost|proxyPort|nonProxyHosts)|server\.port|spring\.(?:profiles\.active|main\.(?:banner-mode|web-application-type))|spring\.ai\.mcp\.server\.(?:stdio|name|version|type)|logging\.(?:level\.[\w.-]+|pattern\.console|file\.name)|quarkus\.(?:log\.level|http\.port))=[ -~]*$/;
/** Values of Python's -X that only change reporting, not where code is loaded from. */
const PYTHON_X =
  /^(?:utf8(?:=[01])?|dev|faulthandler|importtime|showrefcount|tracemalloc(?:=\d+)?|no_debug_ranges|int_max_str_digits=\d+|warn_default_encoding|cpu_count=(?:\d+|default)|gil=[01]|frozen_modules=(?:on|off)|disable[-_]remote[-_]debug)$/;
/** A warning filter without a category of a module, because that module would be imported. */
const PYTHON_W = /^(?:default|error|always|all|module|once|ignore)(?:::[A-Z][A-Za-z]*Warning)?$/;

/** Why a known option is unchecked: its value chooses code. */
export function optionValueDangers(program: string, option: string, value: string | null): readonly Danger[] {
  if (program === 'java' && option.startsWith('-D') && !JAVA_PROPERTY.test(option)) {
    return [markUnchecked(`gives java the property ${quoteWord(option)}, which may load code`)];
  }
  if (program === 'java' && /^-(?:cp|classpath)$/.test(option)) {
    return [markUnchecked(`has java load classes from ${quoteWord(value ?? '')}`)];
  }
  const [flag, text] = value === null ? [option.slice(0, 2), option.slice(2)] : [option, value];
  if (flag === '-X' && isPython(program) && !PYTHON_X.test(text)) {
    return [markUnchecked(`gives ${program} the option ${quoteWord(`-X ${text}`)}, with which it may load other code`)];
  }
  if (flag === '-W' && isPython(program) && !PYTHON_W.test(text)) {
    return [markUnchecked(`gives ${program} the option ${quoteWord(`-W ${text}`)}, with which it may load other code`)];
  }
  return [];
}

function isPython(program: string): boolean {
  return program === 'python' || program === 'pypy' || program === 'py';
}
