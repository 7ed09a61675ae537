# For a step with `always` and `tells`: its command decides whether it changed anything (POSIX sh; dash, bash, BusyBox,
# mksh). Follows step.sh, whose k_show it replaces, and precedes the texts of the step.

# k_show: shows nothing. step.sh calls it before apply, so it arranges that k_correct_status has the last word on the
# exit status. k_newly_owed = watchers to whom nothing is owed yet.
k_show() {
  k_newly_owed=
  for k_watcher in $k_owes; do [ -e "$K_STATE/owed/$k_watcher" ] || k_newly_owed="$k_newly_owed $k_watcher"; done
  trap k_correct_status EXIT
}

# k_correct_status: in a dry run “would change” (11) becomes “unknown” (14), since only the command can tell. If k_code
# ends in `same`, “changed” (10) becomes “in order” (0), and the reactions that this attempt owed are removed.
k_correct_status() {
  case $?:$k_code in
    11:*) exit 14 ;;
    10:*same)
      for k_watcher in $k_newly_owed; do rm -f "$K_STATE/owed/$k_watcher"; done
      exit 0
      ;;
  esac
}
