#!/usr/bin/env bash
# What inotifywait sees of a volume: watch.sh PATH KEY
set -euo pipefail
last=
read_key() {
  local content
  if ! content=$(cat "$2" 2>/dev/null); then
    echo again
  elif [ "$content" != "$last" ]; then
    echo "content $content"
    last=$content
  fi
}
# The lines come on one stream: what it says of itself first, then events.
inotifywait --monitor --event create,moved_to,modify,attrib,delete,delete_self,move_self --format 'event %e %f' "$1" 2>&1 |
  while read -r line; do
    case "$line" in
      *"Watches established"*) echo ready; read_key "$@" ;;
      # Of a directory this is the event that counts; a file has only others.
      "event MOVED_TO ..data") echo "$line"; read_key "$@" ;;
      event*) echo "$line"; if [ -f "$1" ]; then read_key "$@"; fi ;;
    esac
  done
