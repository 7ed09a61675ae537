# For a step that always runs and reports itself whether it changed anything (POSIX sh; dash, bash, BusyBox, mksh): a command
# with `changed`. Follows step.sh, whose k_show it replaces, and precedes the texts of the step.

# k_show: there is no text to show; from here on the step's own report decides how it ends. k_mine = watchers to whom
# nothing is owed yet.
k_show() {
  k_mine=
  for k_o in $k_owes; do [ -e "$K_STATE/owed/$k_o" ] || k_mine="$k_mine $k_o"; done
  trap k_told EXIT
}

# k_told: ends the step as unknown in a dry run; as in order, without a reaction, if `same` follows its command's exit code.
k_told() {
  case $?:$k_code in
    11:*) exit 14 ;;
    10:*same)
      for k_o in $k_mine; do rm -f "$K_STATE/owed/$k_o"; done
      exit 0
      ;;
  esac
}
