# shellcheck shell=sh
# Sourced first by every program of the image contract. They run as root with an environment that partly comes from the
# image, some of them after the agent's code ran in the same container. So this file removes variables that affect a shell,
# a dynamic loader or a locale, and finds programs only in the system's folders. The agent's command gets the removed
# variables back after the change of user (agent_user.sh).

# shellcheck disable=SC2034 # the three are for agent_user.sh
kept_variables='LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT LD_DEBUG LD_PROFILE LD_ORIGIN_PATH LD_BIND_NOT GLIBC_TUNABLES GCONV_PATH LOCPATH NLSPATH LC_ALL LANG LANGUAGE TMPDIR'
agent_path=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
agent_umask=$(umask)

plain_ifs=' 	
'
IFS=$plain_ifs
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 022
unset ENV BASH_ENV CDPATH POSIXLY_CORRECT QUOTING_STYLE TIME_STYLE BLOCK_SIZE BLOCKSIZE LS_BLOCK_SIZE
for name in $kept_variables; do
  eval "given=\${$name+given}"
  # shellcheck disable=SC2154 # set by the line above
  [ -z "$given" ] && continue
  eval "SVC_KEPT_$name=\$$name"
  export "SVC_KEPT_${name?}"
  unset "$name"
done
unset name given
LC_ALL=C
export LC_ALL

# refuse STATUS MESSAGE: exits with one line that names the problem and the fix.
refuse() {
  printf '%s: %s\n' "${0##*/}" "$2" >&2
  exit "$1"
}

warn() {
  printf '%s: warning: %s\n' "${0##*/}" "$1" >&2
}

# bare COMMAND...: runs a program with an empty environment, so that no untrusted variable affects it.
bare() {
  env -i PATH="$PATH" LC_ALL=C "$@"
}

# find_program NAME: sets $program_path to its path in the system's folders. (`command -v` of BusyBox may return no path.)
find_program() {
  for folder in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    program_path=$folder/$1
    [ -f "$program_path" ] && [ -x "$program_path" ] && return 0
  done
  return 1
}

# need_root: the effective user of this process, from the kernel.
need_root() {
  [ -r /proc/self/status ] || refuse 10 'cannot see /proc, so cannot tell whether this is root. Mount /proc in the container.'
  while read -r key _ effective _; do
    [ "$key" = Uid: ] && break
  done </proc/self/status
  [ "$effective" = 0 ] || refuse 10 "has to run as root, and runs as user $effective. Start the container with --user 0; the command itself still runs as the agent user."
}

# mount_points: prints one per line, with blanks at both ends, in the kernel's order.
mount_points=
read_mount_points() {
  while read -r _ _ _ _ point _; do
    mount_points="$mount_points $point "
  done </proc/self/mountinfo
}

# on_a_mount PATH: true when PATH, which must be free of symbolic links, is not on the container's own root file system.
# Such a path may belong to the host.
on_a_mount() {
  rest=$1
  while [ -n "$rest" ]; do
    case $mount_points in
    *" $rest "*) return 0 ;;
    esac
    rest=${rest%/*}
  done
  return 1
}

# only_roots PATH...: true when root owns each of them and nobody whom the agent can be may change it. The first that
# is not so is left in $exposed. The agent's groups are in $agent_groups.
only_roots() {
  exposed=
  listed=$(ls -ldnL "$@" 2>/dev/null) || :
  while read -r permissions _ owner group line; do
    [ -z "$permissions" ] && continue
    exposed=${line##* }
    case $permissions in
    l* | ????????w*) return 1 ;;
    ?????w*) case " $agent_groups " in *" $group "*) return 1 ;; esac ;;
    esac
    [ "$owner" = 0 ] || return 1
  done <<EOT
$listed
EOT
  exposed=
}

# roots_all_the_way PATH...: true when each is absolute, and it, what it links to, and every folder above either are root's alone.
roots_all_the_way() {
  chain=' / '
  for file in "$@"; do
    exposed=$file
    case $file in
    /*) ;;
    *) return 1 ;;
    esac
    true_path=$(readlink -f "$file" 2>/dev/null) || true_path=
    for path in "$file" "$true_path"; do
      while [ -n "$path" ]; do
        case $chain in *" $path "*) break ;; esac
        chain="$chain$path "
        path=${path%/*}
      done
    done
  done
  # shellcheck disable=SC2086 # one word a path; one with blanks is listed in parts, none of which is there
  only_roots $chain
}
