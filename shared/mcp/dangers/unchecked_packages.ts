import { quoteWord, markUnchecked, type Danger } from './danger.ts';
import { baseName, isLauncher, isShell } from './program_names.ts';

/**
 * Registry packages that run or fetch what their arguments say, or start another program: interpreters, shells, task
 * runners, wrappers of MCP servers. By name without scope, extras and version.
 */
const PACKAGES_THAT_RUN_MORE: ReadonlySet<string> = new Set(
  // JavaScript: interpreters and compilers
  (
    'node nodejs node-bin bun deno deno-bin tsx ts-node ts-node-esm ts-node-dev esno esbuild-runner jiti babel-node ' +
    'vite-node swc-node sucrase-node coffeescript coffee-script coffee livescript zx shelljs shelljs-exec-proxy shx bash ' +
    'quickjs txiki.js graaljs ' +
    // JavaScript: package managers and task runners
    'npm npx npm-cli pnpm pnpx yarn bunx corepack ni nypm lerna turbo nx wireit rush just-task gulp gulp-cli grunt grunt-cli ' +
    'jake nps foy create-react-app degit giget tiged cross-env cross-env-shell env-cmd dotenv dotenv-cli dotenvx concurrently ' +
    'npm-run-all npm-run-all2 run-p run-s npm-watch nodemon onchange chokidar-cli watchexec pm2 forever forever-monitor ' +
    'supervisor start-server-and-test wait-on execa execa-cli run-script-os run-if-changed husky lint-staged patch-package ' +
    'node-gyp pkg nexe webtorrent-hook local-web-server-cli ts-standalone electron electron-nightly nw ' +
    // Python
    'python cpython pypy ipython ptpython bpython xonsh jupyter jupyter-core jupyter-console jupyterlab notebook nbclient ' +
    'marimo pip uv uvx pipx poetry pdm hatch rye nox tox invoke fabric ansible ansible-core honcho watchfiles watchdog ' +
    'watchmedo pex shiv zipapp virtualenv pipenv conda cookiecutter copier doit scons meson celery circus gunicorn uvicorn ' +
    'hypercorn pytest coverage debugpy kernprof line-profiler scalene py-spy viztracer codon nuitka cython plumbum sh ' +
    'pyflyby rpyc execnet python-dotenv supervisor runipy papermill streamlit gradio chainlit ' +
    // .NET, Go, Rust, others
    'dotnet-script csharprepl powershell pwsh fsi cake.tool nuke.globaltool yaegi gore gomacro goja evcxr evcxr_repl ' +
    'cargo-script rust-script just mage task air reflex entr gosh elvish joker babashka'
  ).split(' '),
);

/** Wrappers that start or fetch other MCP servers. Within a publisher's scope the same name is the publisher's own server. */
const WRAPPERS: ReadonlySet<string> = new Set(
  (
    'supergateway mcp-proxy mcpo mcp-hub mcp-inspector smithery install-mcp mcp-get mcpm mcp-cli mcptools mcp-tools mcp-use ' +
    'mcp-run mcp-bridge mcp-router metamcp mcp-gateway mcp-wrapper mcp-superassistant-proxy reloaderoo mcpmon mcp-dev mcp ' +
    'fastmcp fastmcp-cli mcp-agent mcp-installer add-mcp @modelcontextprotocol/inspector @modelcontextprotocol/inspector-cli ' +
    '@smithery/cli @anaisbetts/mcp-installer @michaellatman/mcp-get @srbhptl39/mcp-superassistant-proxy @babel/node ' +
    '@swc-node/cli @tbxark/mcp-proxy @wong2/mcp-cli'
  ).split(' '),
);

/** Images of a bare operating system: the arguments are the program. */
const PLAIN_IMAGES: ReadonlySet<string> = new Set(
  'alpine ubuntu debian fedora centos rockylinux almalinux archlinux opensuse busybox bash ubi-minimal ubi amazonlinux wolfi-base git curl'.split(
    ' ',
  ),
);

/** The package name for comparison: no scope, no extras, no version, lower case. */
export function plainPackageName(text: string): string {
  const name = text.replace(/^(?:npm|jsr):/i, '').replace(/(?!^)(?:@|==|\[|[<>~!]=?).*$/s, '');
  const parts = name.split('/').filter((part) => part !== 'cmd');
  return (parts.at(-1) ?? '').toLowerCase().replaceAll('_', '-');
}

/** The whole name, with its scope. */
function scopedName(text: string): string {
  return text
    .replace(/^(?:npm|jsr):/i, '')
    .replace(/(?!^)(?:@|==|\[|[<>~!]=?).*$/s, '')
    .toLowerCase();
}

/** A package that is an interpreter, a shell or a launcher runs unchecked code, like the program of that name. */
export function packageNameDangers(
  runner: string,
  text: string,
  isProgram: (name: string) => boolean,
): readonly Danger[] {
  if (!WRAPPERS.has(scopedName(text)) && !runsMore(plainPackageName(text), isProgram)) return [];
  return [markUnchecked(`has ${runner} start ${quoteWord(text)}, which runs what its arguments say`)];
}

/** True for the plain name of a package that runs what its arguments say. */
export function runsMore(name: string, isProgram: (name: string) => boolean): boolean {
  const base = baseName(name.replace(/-(?:cli|bin|script)$/, ''));
  return [name, base].some(
    (one) => PACKAGES_THAT_RUN_MORE.has(one) || isShell(one) || isLauncher(one) || isProgram(one),
  );
}

/** A package's program is named like the package; another name may be any program of the machine. */
export function isOfPackage(program: string, packages: readonly string[]): boolean {
  const words = wordsOf(program);
  return packages.some((text) => wordsOf(plainPackageName(text)).some((word) => words.includes(word)));
}

const GENERIC = new Set([
  'mcp',
  'server',
  'cli',
  'py',
  'js',
  'python',
  'node',
  'tool',
  'tools',
  'run',
  'client',
  'api',
]);

function wordsOf(name: string): readonly string[] {
  return name
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word.length > 2 && !GENERIC.has(word));
}

/** The command for an image, if it is a program of its own: an interpreter, a shell, a launcher. */
export function imageDangers(
  image: string,
  args: readonly string[],
  isProgram: (name: string) => boolean,
): readonly Danger[] {
  const [first = ''] = args;
  if (args.length === 0) return [];
  const bare = image.split('@')[0]?.split('/').at(-1)?.replace(/:.*$/, '').toLowerCase() ?? '';
  const runs = (name: string): boolean => isShell(name) || isLauncher(name) || isProgram(name);
  if (!first.startsWith('-') && runs(baseName(first))) {
    return [markUnchecked(`has a container start ${quoteWord(first)}, which runs what its arguments say`)];
  }
  if (!PLAIN_IMAGES.has(bare) && !runs(baseName(bare))) return [];
  return [markUnchecked(`runs the image ${quoteWord(image)}, which runs what its arguments say`)];
}
