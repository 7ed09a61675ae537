import { blobOf } from "../blob.ts";
import { sh, shLines, type Sh } from "../sh.ts";
import {
  ifupdownFiles,
  interfaceKind,
  interfaceMembers,
  netdevPath,
  networkdFiles,
  networkdVlan,
  networkManagerFiles,
  type NetworkFile,
  type WantedInterface,
} from "./network-files.ts";

/** The programs that configure networks on a node; auto: the one that the node uses. */
export const backends = ["auto", "networkd", "ifupdown", "networkManager"] as const;
export type Backend = (typeof backends)[number];

/**
 * Sets `backend` to the program that configures networks on this node, or refuses. In a dry run an earlier step may
 * install it.
 */
export function findBackend(given: Backend): Sh {
  const missing =
    given === "auto"
      ? "nothing that kcore knows configures networks on this node"
      : `${given} does not configure networks on this node`;
  return sh`backends=
! systemctl -q is-active systemd-networkd 2>/dev/null || backends="$backends networkd"
! systemctl -q is-active NetworkManager 2>/dev/null || backends="$backends networkManager"
if have ifup && cat /etc/network/interfaces /etc/network/interfaces.d/* 2>/dev/null | grep -E '^[[:space:]]*iface[[:space:]]' | grep -vqE '^[[:space:]]*iface[[:space:]]+lo[[:space:]]'; then backends="$backends ifupdown"; fi
backend=${given}
case $backend in
  auto) backend=\${backends# } ;;
  ifupdown) have ifup || backend= ;;
  *) case "$backends " in *" $backend "*) ;; *) backend= ;; esac ;;
esac
[ -n "$backend" ] || ! unsure || exit 1
[ -n "$backend" ] || refuse NETWORK_UNMANAGED ${`${missing} (active here:`}"\${backends:- none})"
case $backend in *' '*) refuse NETWORK_UNMANAGED "several programs configure networks on this node ($backend): say which by the argument backend" ;; esac`;
}

/** Declares `each_file COMMAND`, which runs COMMAND PATH MODE CONTENT for each file of the backend. */
export function declareFiles(wanted: WantedInterface): Sh {
  const call = ({ path, mode, text }: NetworkFile): Sh => sh`"$1" ${path} ${mode} ${blobOf(text)} || return 1`;
  const { name, vlan } = wanted;
  const atLink = vlan
    ? sh`link_file=$(networkctl status ${vlan.link} 2>/dev/null | sed -n 's/^ *Network File: *//p')
case $link_file in
  /*) ;;
  *)
    ! unsure || exit 1
    refuse NETWORK_UNMANAGED ${`systemd-networkd has no file for ${vlan.link}, on which the VLAN ${name} is to lie: make that a network.interface first`}
    ;;
esac
"$1" "/etc/systemd/network/\${link_file##*/}.d/"${`kcore-${name}.conf`} 0644 ${blobOf(networkdVlan(name))} || return 1`
    : sh``;
  return sh`each_file() {
  case $backend in
    networkd)
      ${shLines(networkdFiles(wanted).map(call))}
      ${atLink}
      ;;
    ifupdown) ${shLines(ifupdownFiles(wanted).map(call))} ;;
    networkManager) ${shLines(networkManagerFiles(wanted).map(call))} ;;
  esac
}`;
}

/** Refuses if another file takes precedence over a file of the backend, for the interface or a member. */
export function refuseOthers(wanted: WantedInterface): Sh {
  const { name, vlan } = wanted;
  return sh`for one in ${[name, ...interfaceMembers(wanted)]}; do
  other=
  case $backend in
    networkd)
      other=$(networkctl status "$one" 2>/dev/null | sed -n 's/^ *Network File: *//p') own=10-kcore-$one.network
      if [ -e "$other" ] && [ "\${other##*/}" != "$own" ] &&
        [ "$(printf '%s\n' "\${other##*/}" "$own" | sort | head -n 1)" = "\${other##*/}" ]; then :; else other=; fi
      ;;
    ifupdown)
      # A member needs no stanza: the stanza of its bond or bridge adds it.
      own=/etc/network/interfaces.d/kcore-${name}
      other=$(grep -lsE "^[[:space:]]*iface[[:space:]]+$(printf '%s\n' "$one" | sed 's/[.]/\\./g')([[:space:]]|$)" /etc/network/interfaces /etc/network/interfaces.d/* |
        { if [ "$one" = ${name} ]; then grep -vFx -e "$own"; else cat; fi; })
      ;;
    networkManager)
      own=/etc/NetworkManager/system-connections/kcore-$one.nmconnection
      other=$(grep -lsFx "interface-name=$one" /etc/NetworkManager/system-connections/* | grep -vFx -e "$own")
      ;;
  esac
  [ -z "$other" ] || refuse NETWORK_ELSEWHERE "$one is configured by another file already: $other"
done
case $backend in
  ifupdown)
    # source-directory ignores names with a dot (interfaces(5)).
    grep -qsE ${`^[[:space:]]*source[[:space:]]+(/etc/network/)?interfaces\\.d/\\*([[:space:]]|$)${name.includes(".") ? "" : "|^[[:space:]]*source-directory[[:space:]]+(/etc/network/)?interfaces\\.d/?([[:space:]]|$)"}`} /etc/network/interfaces ||
      refuse NETWORK_UNMANAGED ${`/etc/network/interfaces does not read the file kcore-${name} in /etc/network/interfaces.d (a line: source /etc/network/interfaces.d/*)`}
    ;;
esac${vlan ? refuseOtherLinks(name, vlan.link) : sh``}`;
}

/** Refuses a VLAN that is to move to another link, while a drop-in of the old link still makes it there. */
function refuseOtherLinks(name: string, link: string): Sh {
  return sh`
case $backend in
  networkd)
    link_file=$(networkctl status ${link} 2>/dev/null | sed -n 's/^ *Network File: *//p')
    for other in /etc/systemd/network/*.network.d/${`kcore-${name}.conf`}; do
      main=\${other%.d/*} main=\${main##*/}
      [ -e "$other" ] && [ "$main" != "\${link_file##*/}" ] || continue
      for file in "/etc/systemd/network/$main" "/run/systemd/network/$main" "/usr/lib/systemd/network/$main"; do
        [ ! -e "$file" ] ||
          refuse NETWORK_ELSEWHERE ${`${name} is configured by another file already: `}"$other"
      done
    done
    ;;
esac`;
}

/**
 * Sets `kind` to the kind of the node's interface of this name, in the form of {@link interfaceKind}; empty if the wanted
 * interface is a network card.
 */
export function readKind({ name, vlan, bond, bridge }: WantedInterface): Sh {
  if (vlan)
    return sh`kind="$(ip -d -o link show dev ${name} 2>/dev/null | sed -n 's/^[0-9]*: [^@]*@\([^:]*\): .* vlan protocol 802.1Q id \([0-9]*\) .*/vlan \2 on \1/p')"
kind=\${kind:-none}`;
  if (bond)
    return sh`mode=none
{ read -r mode more <${`/sys/class/net/${name}/bonding/mode`}; } 2>/dev/null
kind="bond $mode"`;
  if (bridge)
    return sh`stp=none
{ read -r stp <${`/sys/class/net/${name}/bridge/stp_state`}; } 2>/dev/null
case $stp in 0) stp=no ;; none) ;; *) stp=yes ;; esac
kind="bridge, STP $stp"`;
  return sh`kind=`;
}

/** Changes the files by `change`, and applies them to the running network. */
export function applyFiles(wanted: WantedInterface, change: Sh): Sh {
  const { name, vlan } = wanted;
  const members = interfaceMembers(wanted);
  const kind = interfaceKind(wanted);
  const again = [...(vlan ? [vlan.link] : []), ...members];
  return sh`anew=
${kind === undefined ? sh`` : decideRecreate(wanted, kind)}
case $backend in ifupdown) ! ifquery --state ${name} >/dev/null 2>&1 || ifdown --force ${name} || exit 1 ;; esac
${change}
if [ -n "$anew" ] && [ -e ${`/sys/class/net/${name}`} ]; then
  ${dropLink(name)} || exit 1
fi
case $backend in
  networkd)
    # Only a restart makes networkd read the definition of a link again that it has made before.
    if [ -n "$anew" ]; then systemctl restart systemd-networkd || exit 1; else networkctl reload || exit 1; fi
    for one in ${[...again, name]}; do [ ! -e "/sys/class/net/$one" ] || networkctl reconfigure "$one" || exit 1; done
    ;;
  ifupdown) ifup ${name} || exit 1 ;;
  networkManager)
    nmcli connection reload || exit 1
    for one in ${[...members, name]}; do nmcli -w 20 connection up "kcore-$one" || exit 1; done
    ;;
esac`;
}

/** Sets `anew` if the existing interface or its netdev file differs, so that the interface must be deleted and made again. */
function decideRecreate(wanted: WantedInterface, kind: string): Sh {
  const [netdev] = networkdFiles(wanted);
  return sh`if [ -e ${`/sys/class/net/${wanted.name}`} ]; then
  ${readKind(wanted)}
  [ "$kind" = ${kind} ] || anew=yes
  [ "$backend" != networkd ] || cmp -s ${blobOf(netdev?.text ?? "")} ${netdevPath(wanted.name)} || anew=yes
fi`;
}

/**
 * Deletes a link, and waits at most 10 s until networkd has noticed. networkd's socket outlives a restart
 * (systemd-networkd.socket), so a late message about this link would make networkd forget its successor of the same
 * name.
 */
function dropLink(name: string): Sh {
  return sh`index=none tries=0
{ read -r index <${`/sys/class/net/${name}/ifindex`}; } 2>/dev/null
ip link delete ${name} && while [ -e "/run/systemd/netif/links/$index" ] && [ "$tries" -lt 100 ]; do tries=$((tries + 1)) && sleep 0.1; done`;
}

/** Sets `undo` to the command that restores the running network after a revert has restored the files. */
export function undoCommand(wanted: WantedInterface): Sh {
  const { name, vlan } = wanted;
  const isMade = interfaceKind(wanted) !== undefined;
  const others = [...(vlan ? [vlan.link] : []), ...interfaceMembers(wanted)].join(" ");
  const drop = isMade ? dropLink(name).masked : `ip addr flush dev ${name}`;
  return sh`case $backend in
  networkd) undo=${`${isMade ? `${drop}; systemctl restart systemd-networkd` : "networkctl reload"}; for one in ${others} ${name}; do networkctl reconfigure $one; done`} ;;
  ifupdown) undo=${`ifdown --force ${name}; ${drop}; ifup ${name}`} ;;
  networkManager) undo=${`${isMade ? `${drop}; ` : ""}nmcli connection reload; for one in ${others} ${name}; do nmcli -w 20 connection up kcore-$one || nmcli -w 20 device connect $one; done`} ;;
esac`;
}
