/** Shells, and programs that run shell lines or the system's scripts. */
const SHELLS = new Set(
  (
    'sh bash rbash zsh dash ash ksh mksh pdksh csh tcsh fish elvish nu xonsh busybox toybox cmd command powershell pwsh ' +
    'wsl osascript mshta wscript cscript rundll32 regsvr32 msiexec applescript'
  ).split(' '),
);

/** Programs whose arguments are another program, or text that they run or fetch. */
const LAUNCHERS = new Set(
  (
    'env sudo su doas pkexec runuser gosu su-exec setpriv nohup setsid nice ionice chrt taskset timeout time watch xargs ' +
    'parallel find fd script expect unbuffer stdbuf strace ltrace gdb lldb valgrind perf nsenter unshare chroot proot ' +
    'fakeroot bwrap firejail systemd-run start-stop-daemon daemonize exec eval flock tmux screen dtach ssh scp sftp rsh ' +
    'mosh telnet nc ncat netcat socat awk gawk mawk nawk sed ed vi vim nvim view emacs nano make gmake cmake ninja git ' +
    'curl wget aria2c at batch crontab open xdg-open start launchctl schtasks tar zip rsync dd tee cp mv rm ln chmod chown ' +
    'install kill reboot shutdown mount umount insmod modprobe ld-linux ld-musl direnv concurrently npm-run-all cross-env ' +
    'docker-compose podman-compose ctr crictl buildah ' +
    'dotenv nodemon pm2 forever ts-node-dev watchexec entr zx ipython bpython pip capsh ' +
    'nix-shell nix-build nix-env guix flatpak snap pkgx devbox devenv flox asdf mise rtx pyenv rbenv nodenv volta fnm nvm ' +
    'corepack rustup poetry pdm hatch rye pipenv pixi conda mamba micromamba nox tox bundle bundler rake gem mix lein clj ' +
    'clojure sbt jbang mvn mvnw gradle gradlew scala-cli coursier kubectl oc wasmer'
  ).split(' '),
);

/** The program name for classification: without directory, extension and version, in lower case: `/usr/bin/Python3.12` is `python`. */
export function baseName(program: string): string {
  const plain = fileName(program).toLowerCase();
  const named = plain.replace(/[-_]?\d[\d.]*(?:t|d|m|w)?$/, '');
  return named === '' || named === 'pythonw' ? named.replace(/w$/, '') : named;
}

/** The name of a program's file, without directory, and without the extension of Windows programs. */
export function fileName(program: string): string {
  const file = program.split(/[\\/]/).at(-1) ?? '';
  return file.replace(/\.(?:exe|com)$/i, '');
}

export function isShell(name: string): boolean {
  return SHELLS.has(name);
}

export function isLauncher(name: string): boolean {
  return LAUNCHERS.has(name) || name.startsWith('ld-linux') || name.startsWith('ld-musl');
}

const CONTAINER_RUNTIMES = new Set(['docker', 'podman', 'podman-remote', 'nerdctl', 'finch']);

/** Runs an image, whatever package has a program of this name. */
export function isContainerRuntime(name: string): boolean {
  return CONTAINER_RUNTIMES.has(name);
}
