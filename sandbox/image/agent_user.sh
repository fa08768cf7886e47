# shellcheck shell=sh
# Finds the agent user and switches to it. Needs guard.sh.

# find_agent NAME_OR_UID: sets agent_name, agent_uid, agent_gid, agent_home, agent_shell, agent_groups from the image.
find_agent() {
  case $1 in
  '' | -* | *[!A-Za-z0-9_.-]*) refuse 19 'SVC_AGENT_USER is not a user name.' ;;
  esac
  agent_name=
  while IFS=: read -r name _ uid gid _ home shell; do
    if [ "$name" = "$1" ] || [ "$uid" = "$1" ]; then
      agent_name=$name agent_uid=$uid agent_gid=$gid agent_home=$home agent_shell=${shell:-/bin/sh}
      break
    fi
  done </etc/passwd
  [ -n "$agent_name" ] || refuse 19 "the image has no user \"$1\". Add it to the image: RUN useradd --create-home $1"
  case $agent_uid:$agent_gid in
  *[!0-9:]* | :* | *:) refuse 19 "the entry of user \"$1\" in /etc/passwd is damaged." ;;
  esac
  [ "$agent_uid" -ne 0 ] || refuse 19 "user \"$1\" is root, and an agent does not run as root. Add another user to the image."
  case $agent_home in
  /*) ;;
  *) refuse 19 "user \"$1\" has no home directory in /etc/passwd." ;;
  esac
  [ -d "$agent_home" ] || refuse 19 "the home of user \"$1\", $agent_home, is missing. Add it to the image: RUN mkdir -p $agent_home && chown $1 $agent_home"
  agent_groups=$(id -G "$agent_name" 2>/dev/null) || agent_groups=$agent_gid
}

# Runs as the agent user before the command, and restores the variables that guard.sh removed. A command that starts with a
# dash would be an option of exec, so its path is looked up first.
# shellcheck disable=SC2016 # expanded by the shell that runs it
agent_stage='
umask "$SVC_KEPT_umask"
PATH=$SVC_KEPT_PATH
for name in $SVC_KEPT_names; do
  eval "given=\${SVC_KEPT_$name+given}"
  [ -z "$given" ] && continue
  eval "$name=\$SVC_KEPT_$name"
  export "$name"
  unset "SVC_KEPT_$name"
done
unset SVC_KEPT_umask SVC_KEPT_PATH SVC_KEPT_names name given
case $1 in
-*)
  found=$(command -v -- "$1") || { printf "%s: not found\n" "$1" >&2; exit 127; }
  shift
  set -- "$found" "$@"
  ;;
esac
exec "$@"
'

# as_agent COMMAND...: replaces this process; the command has the agent's user, group and supplementary groups, and no capability.
# shellcheck disable=SC2016 # expanded by the shell that runs it
as_agent() {
  # With no-new-privs, neither the command nor its children can become root through a set-user-id program.
  case $drop_method in
  setpriv-strict) exec "$drop_program" --reuid="$agent_uid" --regid="$agent_gid" --init-groups --inh-caps=-all --no-new-privs -- "$@" ;;
  setpriv) exec "$drop_program" --reuid="$agent_uid" --regid="$agent_gid" --init-groups -- "$@" ;;
  runuser) exec "$drop_program" -u "$agent_name" -- "$@" ;;
  su-exec | gosu) exec "$drop_program" "$agent_name" "$@" ;;
  chroot) exec "$drop_program" --userspec="$agent_uid:$agent_gid" --groups="$(comma_separated "$agent_groups")" / "$@" ;;
  su) exec "$drop_program" -s /bin/sh -c 'exec "$@"' -- "$agent_name" sh "$@" ;;
  esac
  exit 20
}

comma_separated() {
  # shellcheck disable=SC2086 # the groups are numbers with blanks between
  set -- $1
  IFS=,
  printf '%s' "$*"
  IFS=$plain_ifs
}

# find_drop_method: finds the first way to change user that yields exactly the agent's ids and no capability.
find_drop_method() {
  for candidate in setpriv-strict setpriv runuser su-exec gosu chroot su; do
    drop_method=$candidate
    find_program "${candidate%-strict}" || continue
    drop_program=$program_path
    drop_is_complete && return 0
  done
  refuse 20 'the image has no program that changes user: none of setpriv, runuser, su-exec, gosu, chroot --userspec, su works. Install util-linux or su-exec.'
}

drop_is_complete() {
  # shellcheck disable=SC2016 # expanded by the shell that runs it
  seen=$(
    as_agent /bin/sh -c 'while read -r key a b c d _; do
      case $key in Uid: | Gid:) echo "$a $b $c $d" ;; CapEff:) echo "$a" ;; esac
    done </proc/self/status' 2>/dev/null </dev/null
  ) || return 1
  [ "$seen" = "$agent_uid $agent_uid $agent_uid $agent_uid
$agent_gid $agent_gid $agent_gid $agent_gid
0000000000000000" ]
}

# give_streams: gives the pipes and terminals of the standard streams to the agent user, as an engine does for a container
# that starts as that user; else programs cannot open /dev/stderr or their terminal by name. Files stay as they are.
give_streams() {
  streams=
  for fd in 0 1 2; do
    if [ -t "$fd" ] || [ -p "/proc/self/fd/$fd" ]; then streams="$streams /proc/self/fd/$fd"; fi
  done
  # shellcheck disable=SC2086 # one word a stream
  [ -z "$streams" ] || chown "$agent_uid" $streams || :
}

# become_agent COMMAND...: the last call of a program: the command runs in its place, as the agent user.
become_agent() {
  give_streams
  # The command does not get the variables that set up the container.
  unset SVC_AGENT_USER SVC_PROXY_WAIT SVC_IMAGE_SENTINEL SVC_STEP_SENTINEL LC_ALL
  HOME=$agent_home USER=$agent_name LOGNAME=$agent_name SHELL=$agent_shell
  SVC_KEPT_umask=$agent_umask SVC_KEPT_PATH=$agent_path SVC_KEPT_names=$kept_variables
  export HOME USER LOGNAME SHELL SVC_KEPT_umask SVC_KEPT_PATH SVC_KEPT_names
  as_agent /bin/sh -c "$agent_stage" svc-agent "$@"
}
