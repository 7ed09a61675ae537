import type { Blob } from "../blob.ts";
import { sh, type Sh } from "../sh.ts";

/** A cluster update on one node: the folder of the node's updater, and the owner that gives the updater orders. */
export interface UpdateOnNode {
  /** The folder of updates: `updates` below the node's state folder. */
  readonly folder: string;
  /** Where the running version is read: the profile of kcore's runtime, or a link to a NixOS system. */
  readonly runs: { readonly profile: string } | { readonly system: string };
  readonly update: string;
  readonly owner: string;
  /** The epoch that the bastion signed this owner for. */
  readonly epoch: number;
  /** The target of the update, in the form of `runtime`. */
  readonly target: string;
  /** Whether a running target counts although the next boot would not keep it. */
  readonly tried: boolean;
}

/**
 * Reads the journal of a node's updater (src/updater/journal.ts), by the function `read_updates`.
 * Of the last accepted order it sets `f_name`, `f_epoch`, `f_owner`, `f_generation` and `f_seq`. `busy`: the updater
 * takes no orders of another update.
 * Of the updater's report it sets `r_state`, `r_seq`, `waits` and `ours`, which is empty if the report is about another
 * update or owner. `previous`: the node can roll back from this update. `boots`: the updater is about to boot the node
 * for this owner's order. `ordered`: the last step that the bastion ordered, if this owner ordered it.
 * `runtime`: the running version, a store path or the flake of a NixOS system. Outside this owner's own activation, and
 * without `tried`, a target that the next boot would not keep does not count: then `runtime` is the next boot's version.
 * `runtime` is `under way` while the target runs and the updater still carries out an activation or a rollback.
 */
export function readUpdaterJournal({ folder, runs, update, owner, target, tried }: UpdateOnNode): Sh {
  return sh`# pick KEY TEXT: value = the first value of KEY in a JSON text, a string without escapes or a number.
pick() {
  value=
  case $2 in *"\"$1\":"*) ;; *) return 1 ;; esac
  value=\${2#*"\"$1\":"}
  case $value in '"'*) value=\${value#'"'} && value=\${value%%'"'*} ;; *) value=\${value%%[,\}]*} ;; esac
}
fence_in() {
  fence=
  case $1 in *'"fence":{'*) fence=\${1#*'"fence":{'} && fence=\${fence%%\}*} ;; *) return 1 ;; esac
}
take_fence() {
  pick name "$fence" && f_name=$value
  pick epoch "$fence" && f_epoch=$value
  pick owner "$fence" && f_owner=$value
  pick generation "$fence" && f_generation=$value
  pick seq "$fence" && f_seq=$value
}
read_updates() {
  busy= f_name= f_epoch=0 f_owner= f_generation=1 f_seq=0 r_state= r_seq=0 waits= previous= ours= ordered= boots=
  # The report precedes all text of a manifest in the journal, so no manifest can imitate it.
  whole=$(cat ${folder}/journal.json 2>/dev/null)
  journal=\${whole%%'"report":{'*} report=
  case $whole in *'"report":{'*) report=\${whole#*'"report":{'} && report=\${report%%',"brings":"'*} ;; esac
  if fence_in "$report"; then
    pick seq "$fence" && r_seq=$value
    pick name "$fence" && [ "$value" = ${update} ] && pick owner "$fence" && [ "$value" = ${owner} ] && ours=1
    pick state "\${report#*'"fence":{'}" && r_state=$value
    case $report in *'"waitsFor":"bastion"'*) waits=1 ;; esac
    case $report in *'"previous":{'*) previous=1 ;; esac
  fi
  # The updater reports an accepted order only later: its fence counts from the journal.
  if fence_in "$journal"; then take_fence; fi
  value=$(cat ${folder}/ordered 2>/dev/null)
  case $value in ${owner}" "*) ordered=\${value#* } && last=\${ordered#* } ordered=\${ordered% *} ;; esac
  # boots counts only in the boot in which it was written, by the updater's name of a boot (src/updater/node-ports.ts).
  read -r boot </proc/sys/kernel/random/boot_id && read -r value </proc/1/stat
  set -- \${value##*) }
  # In a container, updater and runner may see different boot_ids.
  [ ! -e /run/systemd/container ] || boot=
  # A preparation that has not begun does not make the updater busy.
  case $whole in *'"doing":{"step":"'* | *'"next":{"step":"'[!p]*) busy=1 ;; esac
  case $ours$whole in 1*'"boots":true,"hasBooted":'*'"bootId":"'"$boot"*" \${20}"'"'*) boots=1 ;; esac
  # The updater remembers the former version also after orders of other updates.
  [ "$f_name" = ${update} ] || previous=
  case $whole in *'"previousOf":{"name":"'${update}'"'*) previous=1 ;; esac
  ${"profile" in runs ? runtimeOf(runs.profile) : systemOf(runs.system, folder)}
  case $ours:$ordered:$r_state in
    1:activate:activating | 1:activate:rebooting) ;;
    *)
      if [ "$runtime" = ${target} ]; then
        ${tried ? sh`:` : sh`runtime=$next_boot`}
        case $whole in *'"doing":{"step":"activate"'* | *'"doing":{"step":"roll_back"'*) runtime="under way" ;; esac
      fi
      ;;
  esac
}`;
}

const runtimeOf = (
  profile: string,
): Sh => sh`value=$(readlink ${profile}) && next_boot=$(readlink ${`${profile.replace(/\/[^/]*$/, "")}/`}"$value") || next_boot=none
  runtime=$(sed -n 's|^ExecStart=\(/nix/store/[^/]*\)/.*|\1|p' /run/systemd/system/kcore-node-agent.service.d/kcore-update.conf 2>/dev/null)
  [ -n "$runtime" ] || runtime=$next_boot`;

/**
 * Names a NixOS system by the flake that it was built of, from the updater's systems.json (src/updater/nixos-systems.ts);
 * the last entry counts. Sets `next_boot` to the next boot's system, and `runtime` to the system of the link.
 */
const systemOf = (link: string, folder: string): Sh => sh`known=$(cat ${folder}/systems.json 2>/dev/null)
  for system in /nix/var/nix/profiles/system ${link}; do
    next_boot=$runtime runtime=none
    [ ! -e "$system" ] || runtime=$(readlink -f "$system")
    entry='{"path":"'$runtime'","id":"'
    case $known in *"$entry"*) runtime=\${known##*"$entry"} && runtime=\${runtime%%'"'*} ;; esac
  done`;

/** The function `refuse_failure`: refuses with the failure in the report. */
const refuseFailure = (folder: string): Sh => sh`refuse_failure() {
  rm -f ${folder}/ordered
  kind=$(printf '%s\n' "$report" | sed -nE 's/.*"failure":\{"kind":"([a-z]+)".*/\1/p')
  text=$(printf '%s\n' "$report" | sed -nE 's/.*"failure":\{"kind":"[a-z]+","message":"(([^"\\]|\\.)*)".*/\1/p' | sed 's/\\"/"/g')
  text=$(printf '%b' "\${text:-the updater does not say why}")
  case $kind in
    gate) refuse UPDATE_GATE_FAILED "$text" ;;
    *) refuse UPDATE_FAILED "\${kind:-failed}: $text" ;;
  esac
}`;

/**
 * The functions `order STEP` and `await STATE SECONDS`; both refuse a failure that the updater reports. `order` gives
 * the updater an order with the fields that the bastion signed. `await` waits for the updater's report about the order, or
 * until the updater is about to boot the node.
 */
export function giveOrders({ folder, update, owner, epoch }: UpdateOnNode, signed: Blob): Sh {
  return sh`${refuseFailure(folder)}
order() {
  read_updates
  # After a boot the order is not given again if its failure is reported now.
  if [ -n "$ours" ] && [ "$r_state" = failed ] && [ "$ordered" = "$1" ] && [ "$r_seq" -ge "$last" ]; then refuse_failure; fi
  if [ "$f_name" != ${update} ]; then
    # The node's last order is of another update: the last one of this update is in the journal's list of past orders.
    f_generation=1 f_seq=0
    fence=\${journal#*'"past":['} && fence=\${fence%%]*}
    case $fence in *'{"name":"'${update}'",'*) fence=\${fence#*'{"name":"'${update}'",'} && fence=\${fence%%\}*} && take_fence ;; esac
  fi
  f_name=${update} f_owner=${owner} f_epoch=${epoch}
  seq=$((f_seq + 1))
  umask 077
  # hold only confirms an activation, so that stays the recorded order.
  mkdir -p ${folder} && { [ "$1" = hold ] || printf '%s\n' ${owner}" $1 $seq" >${folder}/ordered; } &&
    {
      printf '%s' '{"fence":{"name":"'${update}'","epoch":'"$f_epoch"',"owner":"'${owner}'","generation":'"$f_generation"',"seq":'"$seq"'},'
      printf '%s' '"step":"'"$1"'","contact":"bastion",'
      cat ${signed} && echo '}'
    } >${folder}/inbox.new && mv -f ${folder}/inbox.new ${folder}/inbox.json
}
await() {
  waited=0 noted=
  while :; do
    read_updates
    if [ -n "$ours" ] && [ "$r_seq" -ge "$seq" ]; then
      case $1:$r_state:$waits in
        # For fence the updater repeats its last report on this update: only a refusal concerns this order.
        fenced:failed:*) case $report in *'"failure":{"kind":"refused"'*) refuse_failure ;; esac ;;
        *:failed:*) refuse_failure ;;
      esac
      case $1:$r_state:$waits in
        fenced:* | prepared:prepared:* | activating:activating:1 | activating:activated:*) return 0 ;;
        activated:activated:* | rolled_back:rolled_back:*) return 0 ;;
      esac
      [ -z "$boots" ] || return 0
      [ "$r_state" = "$noted" ] || note "the updater says: $r_state"
      noted=$r_state
    elif [ -e ${folder}/inbox.json ]; then
      [ "$waited" -lt 60 ] || refuse UPDATER_SILENT "the updater of this node does not take its order: systemctl status kcore-updater.path kcore-updater"
    elif [ "$waited" -ge 10 ] && [ "$f_name $f_owner" != ${`${update} ${owner}`} ]; then
      refuse UPDATE_REFUSED "the node belongs to the update $f_name of $f_owner, epoch $f_epoch"
    fi
    [ "$waited" -lt "$2" ] || refuse UPDATE_FAILED "the updater did not report a result within $2 s"
    sleep 1
    waited=$((waited + 1))
  done
}`;
}
