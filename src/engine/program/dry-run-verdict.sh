# The verdict of a step in a dry run, behind earlier steps that would change something (POSIX sh; dash, bash, BusyBox,
# mksh). The segments of dry runs bring this function along (segment.ts).

# k_doubt VERDICT [KEY...]: in a dry run, reports the step `i` as unknown when its verdict does not survive an earlier
# step's change (dry-run-dependencies.ts). If it survives on a condition, that is reported, too. False: the verdict
# stays. With KEYs, the step depends on those alone. a_KEY = words of the two digits of a survival (effects.ts) and the
# earlier step's key. The verdict `early` comes before the step's probe.
k_doubt() {
  eval "k_after=\${a_$i:-}"
  k_if=
  for k_earlier in $k_after; do
    case $#:" $* " in 1:* | *" ${k_earlier#??} "*) ;; *) continue ;; esac
    eval "k_its_outcome=\${o_${k_earlier#??}:-}"
    case $k_its_outcome in would* | unknown | *-if) ;; *) continue ;; esac
    case $k_its_outcome:${k_earlier%"${k_earlier#??}"}$1 in
      *:2?ok | *:2?skipped | would:?2would | unknown:?2would | *:??interrupted) ;;
      *-if:??early | *:[12]?early | *:?[12]early) ;;
      *:1?ok | *:?1would | *-if:??ok | *-if:??skipped | *-if:??would)
        # At most three earlier steps are reported.
        case $k_if in *' '*' '*' '*) ;; *) k_if="$k_if ${k_earlier#??}" ;; esac
        ;;
      *)
        k_flush
        eval "o_$i=unknown"
        k_event "end $i unknown 14 after ${k_earlier#??}"
        return 0
        ;;
    esac
  done
  case $k_if:$1 in :* | *:early) return 1 ;; esac
  k_flush
  k_unsure=1
  eval "o_$i=$1-if"
  k_event "end $i $1 0 unless$k_if"
}
