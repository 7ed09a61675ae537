# A look at the steps of a segment (POSIX sh; dash, bash, BusyBox, mksh): are all of them in order, and is nothing left to
# do from earlier runs? It only reads: no lock, no folder, no journal. Its last frame is `look in-order`, with the keys of
# the steps that `onlyIf` skips, or `look differs`. Then the same shell takes the next text from the bastion.
#
# Follows state-folder.sh, evidence.sh and, if a step needs it, step-functions.sh. Given: k_nonce K_STATE K_RUNID
# K_NODE K_DRY K_NOW, and the function k_steps (look.ts), which calls k_prove, k_begin_probes, k_probe and
# k_reached. A further look at the same node brings its own k_steps and calls k_look.

# shellcheck disable=SC2317 # k_steps calls the functions
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/nix/var/nix/profiles/default/bin:/run/current-system/sw/bin
umask 077
# shellcheck disable=SC3045
ulimit -Sc 0
unset CDPATH ENV IFS
# A file of an apply's is not here, and no probe can make one.
K_TMP=/dev/null/none
K_NL='
'
if [ -n "${KSH_VERSION-}" ]; then
  k_say() { print -r -- "$k_nonce $1"; }
else
  k_say() { printf '%s\n' "$k_nonce $1"; }
fi
# k_fatal: the run itself refuses such a node, so the look differs.
k_fatal() {
  k_unusable=1
}

# k_is_free: true if no run works on the node, and none has left anything: a lock, a mark, an owed reaction, a change on
# trial, or folders of a killed step (aside).
k_is_free() {
  k_unusable=
  [ -d "$K_STATE" ] && k_hello && [ -z "$k_unusable" ] || return 1
  K_BOOT_ID=$k_boot
  for k_link in "$K_STATE"/lock/*; do [ ! -L "$k_link" ] || return 1; done
  for k_path in "$K_STATE"/owed/* "$K_STATE"/runs/*/mark "$K_STATE/trial"; do
    ! k_exists "$k_path" || return 1
  done
  [ ! -s "$K_STATE/aside" ]
}

# k_prove WORDS...: true if the evidence shows all these steps in order. The words of a step (batch.ts) are one argument:
# the type, the path and all words after it.
k_prove() {
  k_begin_evidence
  for k_words in "$@"; do k_add_evidence ${k_words%% *} 0 - 0 - ${k_words#* }; done
  k_take_evidence
  for k_words in "$@"; do k_holds ${k_words%% *} 0 - 0 - ${k_words#* } || return 1; done
}

# k_begin_probes: tells this shell's process group, which the bastion ends if the probes take too long.
k_begin_probes() {
  read -r k_stat </proc/$$/stat
  set -- ${k_stat##*) }
  k_say "probing $3"
}

# k_step KEY: begins the description of a step.
k_step() {
  k_key=$1 k_always= k_creates= k_tools= k_want= k_env= k_registers= kt_probe= kt_unless= kt_onlyif=
}

# k_probe: true if the step that these variables describe is in order, or skipped: k_key k_creates k_always k_tools k_want
# k_env kt_probe kt_onlyif kt_unless; k_registers: later steps may use its facts and its output. Notes go to fd 5.
k_probe() {
  if [ -n "$kt_onlyif" ] && ! k_guard "$kt_onlyif"; then
    k_skipped="$k_skipped $k_key"
    return 0
  fi
  if [ -n "$k_creates" ] && k_exists "$k_creates"; then return 0; fi
  if [ -n "$kt_unless" ] && k_guard "$kt_unless"; then return 0; fi
  [ -z "$k_always" ] || return 1
  for k_tool in $k_tools; do have "${k_tool%%=*}" || return 1; done
  k_lines=$(
    exec 3>&1 2>/dev/null </dev/null
    [ -n "$k_registers" ] || exec >/dev/null
    umask 022
    eval "$k_env"
    eval "$kt_probe"
  )$K_NL || return 1
  k_facts=$K_NL k_out=
  while [ -n "$k_lines" ]; do
    k_line=${k_lines%%"$K_NL"*} k_lines=${k_lines#*"$K_NL"}
    case $k_line in
      'F '*) k_facts=$k_facts${k_line#F }$K_NL && [ -z "$k_registers" ] || k_say "have $k_key ${k_line#F }" ;;
      *) k_out=${k_out:+$k_out$K_NL}$k_line ;;
    esac
  done
  [ -z "$k_registers" ] || { k_esc "$k_out" && k_say "stdout $k_key $k_escaped"; }
  k_equal
}

# k_guard TEXT: runs an operator's condition; see k_text of step.sh.
k_guard() {
  eval "(exec >/dev/null 2>&1 </dev/null
umask 022
$k_env
$1
)"
}

# k_reached NAME...: true if earlier runs have recorded these milestones, each as JSON.
k_reached() {
  { read -r k_milestones <"$K_STATE/milestones"; } 2>/dev/null
  for k_name in "$@"; do
    case ,$k_milestones, in *",$k_name,"*) ;; *) return 1 ;; esac
  done
}

# k_look: looks, tells the verdict, and goes on with the next text.
k_look() {
  k_skipped= k_have= k_unsure=
  exec 5>&1
  if k_is_free && k_steps; then
    k_say "look in-order$k_skipped"
  else
    k_say "look differs"
  fi
  exec 5>&-
  IFS= read -r k || exit
  eval "$k"
  exit
}
