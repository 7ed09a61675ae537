# For a step that always runs and reports itself whether it changed anything (POSIX sh; dash, bash, BusyBox, mksh): a command
# with `changed`. The text stands behind step.sh, whose k_show it replaces, and before the texts of the step.

# k_show: there is no text to show; but from here on the step ends as it tells. k_mine = watchers to whom nothing is owed yet.
k_show() {
  k_mine=
  for k_o in $k_owes; do [ -e "$K_STATE/owed/$k_o" ] || k_mine="$k_mine $k_o"; done
  trap k_told EXIT
}

# k_told: unknown in a dry run; in order, and nothing to react to, when its command ended with a code behind which stands `same`.
k_told() {
  case $?:$k_code in
    11:*) exit 14 ;;
    10:*same)
      for k_o in $k_mine; do rm -f "$K_STATE/owed/$k_o"; done
      exit 0
      ;;
  esac
}
