#!/bin/sh
# Installs hotmap on this machine as a systemd service, upgrades it, or removes it. Safe to run again; docs/machine.md tells the rest.
#
#   install.sh [--binary FILE] [--agent] [--no-start]
#   install.sh --uninstall [--agent] [--purge]
#
#   --binary FILE   the program to install; by default the file `hotmap` beside this script, else target/release/hotmap
#   --agent         the node of a cluster (hotmap-agent.service) and not API server, store and node (hotmap.service)
#   --no-start      install and enable, do not start or restart
#   --uninstall     end the pods and remove service and program; objects, certificates and settings stay
#   --purge         with --uninstall: remove those as well
#
# DESTDIR=DIR works beneath DIR and neither asks for root nor talks to systemd: for packages and images.
set -eu

KERNEL_MIN=5.14
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=${DESTDIR:-}
root=${root%/}

say() { printf 'install: %s\n' "$*"; }
warn() { printf 'install: warning: %s\n' "$*" >&2; }
die() {
  printf 'install: %s\n' "$*" >&2
  exit 1
}

binary='' unit=hotmap start=yes uninstall='' purge=''
while [ $# -gt 0 ]; do
  case $1 in
    --binary)
      [ $# -ge 2 ] || die "--binary needs a file"
      binary=$2
      shift
      ;;
    --agent) unit=hotmap-agent ;;
    --no-start) start='' ;;
    --uninstall) uninstall=yes ;;
    --purge) purge=yes ;;
    -h | --help)
      sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//p;}' "$0"
      exit 0
      ;;
    *) die "unknown argument $1; --help lists them" ;;
  esac
  shift
done
[ -z "$purge" ] || [ -n "$uninstall" ] || die "--purge removes all objects: it goes with --uninstall only"

program=$root/usr/local/bin/hotmap
unit_file=$root/etc/systemd/system/$unit.service
settings=$root/etc/default/$unit
data=$(sed -n 's/^HOTMAP_DATA_DIR=//p' "$settings" 2>/dev/null | tail -n 1 | tr -d "\"'")
data=${data:-/var/lib/hotmap}

# Whether systemd runs here and is to be told.
has_systemd() { [ -z "$root" ] && [ -d /run/systemd/system ]; }

check_machine() {
  [ "$(uname -s)" = Linux ] || die "hotmap runs on Linux only"
  kernel=$(uname -r)
  oldest=$(printf '%s\n%s\n' "$KERNEL_MIN" "${kernel%%[!0-9.]*}" | sort -V | head -n 1)
  [ "$oldest" = "$KERNEL_MIN" ] || die "Linux $kernel is too old: pods need $KERNEL_MIN or newer"
  grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || die "this kernel has no overlay file system, which pods need"
  [ "$(cat /proc/sys/user/max_user_namespaces 2>/dev/null || echo 1)" -gt 0 ] ||
    die "user namespaces are switched off; set user.max_user_namespaces with sysctl"
  grep -qw cgroup2 /proc/self/mounts || warn "no cgroup v2 is mounted: pods run, but their limits may not hold"
  has_systemd || warn "systemd does not run here: start 'hotmap up' by other means"
}

# Replaces a file by one rename: what runs goes on with the old one.
put() { # MODE FROM TO
  install -d "$(dirname "$3")"
  install -m "$1" "$2" "$3.new"
  mv -f "$3.new" "$3"
}

write_settings() {
  install -d "$(dirname "$settings")"
  if [ -e "$settings" ]; then
    say "$settings is there and stays as it is"
    return
  fi
  if [ "$unit" = hotmap ]; then
    install -d -m 0700 "$root/etc/hotmap" "$root/etc/hotmap/manifests"
    cat > "$settings.new" <<'SETTINGS'
# Flags of `hotmap up`, by their variables (`hotmap up --help` names them). `systemctl restart hotmap` makes them known; pods go on.
# Manifests in this directory are applied when they change.
HOTMAP_FILENAME=/etc/hotmap/manifests
# Delete what was applied from there and is in no file any more.
#HOTMAP_PRUNE=true
# Where the API listens; other machines need an address that they can reach.
#HOTMAP_LISTEN=127.0.0.1:6443
#HOTMAP_LOG=warn
SETTINGS
  else
    cat > "$settings.new" <<'SETTINGS'
# How `hotmap agent` joins: `hotmap token create --print-join-command` on the server prints these. The token is needed once.
#HOTMAP_JOIN=https://192.0.2.1:6443
#HOTMAP_TOKEN=
#HOTMAP_CA_HASH=sha256:
# Or a kubeconfig, in any cluster.
#HOTMAP_KUBECONFIG=/etc/hotmap/kubeconfig
#HOTMAP_LOG=warn
SETTINGS
  fi
  # It may hold a token.
  chmod 0600 "$settings.new"
  mv "$settings.new" "$settings"
}

do_install() {
  if [ -z "$binary" ]; then
    for candidate in "$here/hotmap" "$here/../hotmap" "$here/../target/release/hotmap"; do
      if [ -f "$candidate" ] && [ -x "$candidate" ]; then
        binary=$candidate
        break
      fi
    done
  fi
  [ -n "$binary" ] || die "no program found; name it with --binary"
  [ -x "$binary" ] || die "$binary is no program"
  "$binary" version > /dev/null || die "$binary does not run here"
  source_unit=$here/systemd/$unit.service
  [ -f "$source_unit" ] || die "$source_unit is missing: run this script where it came from"

  install -d -m 0700 "$root$data"
  chmod 0700 "$root$data"
  put 0755 "$binary" "$program"
  put 0644 "$source_unit" "$unit_file"
  write_settings
  say "$("$binary" version) is in $program"
  has_systemd || return 0
  systemctl daemon-reload
  systemctl enable --quiet "$unit.service"
  [ -n "$start" ] || return 0
  if [ "$unit" = hotmap-agent ] && ! grep -Eq '^HOTMAP_(JOIN|KUBECONFIG)=' "$settings" && [ ! -e "$data/agent.kubeconfig" ]; then
    say "say in $settings how this node joins, then: systemctl start $unit"
    return 0
  fi
  # Pods go on running: the unit kills the one process only.
  systemctl restart "$unit.service"
  say "$unit.service runs; 'journalctl -u $unit' has its words"
}

do_uninstall() {
  if has_systemd; then
    systemctl disable --quiet --now "$unit.service" 2>/dev/null || :
  fi
  if [ -z "$root" ] && [ -e "$data/id" ] && [ -x "$program" ]; then
    # Without the program nobody could end the pods any more.
    "$program" down --data-dir "$data" ${purge:+--purge} || die "pods could not be ended; nothing else was removed"
  fi
  rm -f "$unit_file"
  other=hotmap
  [ "$unit" = hotmap-agent ] || other=hotmap-agent
  if [ -e "$root/etc/systemd/system/$other.service" ]; then
    say "$program stays: $other.service needs it"
  else
    rm -f "$program"
  fi
  if [ -n "$purge" ]; then
    rm -rf "${root}${data:?}" "$settings"
    [ "$unit" = hotmap-agent ] || rm -rf "${root}/etc/hotmap"
    say "hotmap and all its data are gone"
  else
    say "hotmap is gone; objects and certificates stay in $data, settings in $settings"
  fi
  has_systemd && systemctl daemon-reload || :
}

[ -n "$root" ] || [ "$(id -u)" -eq 0 ] || die "run it as root: pods need mounts, namespaces and cgroups"
if [ -n "$uninstall" ]; then
  do_uninstall
else
  [ -n "$root" ] || check_machine
  do_install
fi
