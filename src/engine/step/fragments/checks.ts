import { hostPort } from "../host-port.ts";
import { sh, type Sh } from "../sh.ts";
import type { AssertCheck } from "./check-fields.ts";
import { saysSynchronized } from "./clock.ts";
import { wholeDisks } from "./disk-functions.ts";
import { listening, socketOwner } from "./ports.ts";

/** A check: the name of its fact, and its text of sh. */
export interface NamedCheck {
  readonly name: string;
  /** Calls `problem TEXT` if the check does not hold. */
  readonly test: Sh;
}

type Makers = {
  readonly [Kind in Exclude<keyof AssertCheck, "when">]-?: (
    value: NonNullable<AssertCheck[Kind]>,
  ) => NamedCheck | NamedCheck[];
};

/** The facts and the sh of one entry: none where `when` is false, several for a list. */
export function checksOf({ when = true, ...check }: AssertCheck): readonly NamedCheck[] {
  const [kind, value] = Object.entries(check)[0] ?? ["root", true];
  // The schema ties the value's type to its key; TypeScript cannot follow that through the table.
  return when ? [(makers[kind as keyof Makers] as (value: unknown) => NamedCheck | NamedCheck[])(value)].flat() : [];
}

/** sh condition: the variable's value is one of these words. */
function oneOf(variable: Sh, words: readonly string[]): Sh {
  return sh`case "$K_NL"${words.join("\n")}"$K_NL" in *"$K_NL$${variable}$K_NL"*) ;; *) false ;; esac`;
}

const machines = new Map([
  ["amd64", "x86_64"],
  ["x64", "x86_64"],
  ["arm64", "aarch64"],
]);

const makers: Makers = {
  os: ({ id, version }) => ({
    name: "operating system",
    test: sh`ID= VERSION_ID= PRETTY_NAME=
[ ! -r /etc/os-release ] || . /etc/os-release
found="$ID $VERSION_ID"
${oneOf(sh`ID`, id)} || problem "is \${PRETTY_NAME:-unknown}, not "${id.join(" or ")}
${version === undefined ? sh`` : sh`${oneOf(sh`VERSION_ID`, version)} || problem "is $found, not version "${version.join(" or ")}`}`,
  }),
  arch: (words) => ({
    name: "architecture",
    test: sh`machine=$(uname -m)
${oneOf(
  sh`machine`,
  words.map((word) => machines.get(word) ?? word),
)} || problem "is $machine, not "${words.join(" or ")}`,
  }),
  cpus: (min) => ({
    name: "processors",
    test: sh`count=$(nproc 2>/dev/null || grep -c '^processor' /proc/cpuinfo)
[ "$count" -ge ${min} ] || problem "$count, at least "${min}" are needed"`,
  }),
  memory: (min) => ({
    name: "memory",
    test: sh`while read -r key kib _; do [ "$key" != MemTotal: ] || break; done </proc/meminfo
[ "$kib" -ge ${Math.ceil(min / 1024)} ] || problem "$((kib / 1024)) MiB, at least "${mebibytes(min)}" are needed"`,
  }),
  freeSpace: ({ path, min }) => ({
    name: `free space ${path}`,
    test: sh`above=${path}
until [ -e "$above" ]; do above=$(dirname "$above"); done
free=$(df -Pk "$above" | { read -r _; read -r _ _ _ free _; echo "$free"; })
[ "$free" -ge ${Math.ceil(min / 1024)} ] || problem "$((free / 1024)) MiB on $above, at least "${mebibytes(min)}" are needed"`,
  }),
  diskCount: (min) => ({
    name: "disks",
    // The lab's disks are loop devices with a link in by-id; other loop devices are no disks.
    test: sh`${wholeDisks}
count=$({ whole_disks | grep -v '^loop'; find /dev/disk/by-id -name 'lab-*' ! -name '*-part[0-9]*' 2>/dev/null; } | wc -l)
[ "$count" -ge ${min} ] || problem "$count, at least "${min}" are needed"`,
  }),
  command: (words) => ({
    name: `command ${words.join(" ")}`,
    test: sh`missing=
for one in ${words}; do have "$one" || missing="$missing $one"; done
[ -z "$missing" ] || problem "not there:$missing"`,
  }),
  clock: ({ now, maxSkew, warn }) => ({
    name: "clock",
    test: sh`now=${now ?? ""}
: "\${now:=\${K_NOW:-}}"
[ -n "$now" ] || problem "the bastion's time is not known (give now)"
skew=$(($(date +%s) - now)) way=ahead
[ "$skew" -ge 0 ] || { skew=$((-skew)); way=behind; }
[ "$skew" -le ${Math.floor(maxSkew)} ] || problem "$skew s $way of the bastion's, at most "${Math.floor(maxSkew)}" s will do"
[ "$skew" -le ${Math.floor(warn)} ] || note "the clock is $skew s $way of the bastion's"`,
  }),
  timeSync: () => ({
    name: "time service",
    test: sh`if have chronyc && ${saysSynchronized.chrony}; then :
elif have systemd-detect-virt && systemd-detect-virt -q --container; then : # a container's clock is its host's
elif have timedatectl; then
  ${saysSynchronized.timesyncd} || problem "the clock is not synchronised (timedatectl); if something else keeps it: --set time_sync=false"
else problem "cannot tell: neither chronyc nor timedatectl is there; if something else keeps the clock: --set time_sync=false"; fi`,
  }),
  portFree: ({ port, unlessUnit = [], unlessOwner = [] }) => ({
    name: `port ${port} free`,
    test: sh`${listening(port)}
if [ -n "$sockets" ]; then
  ${socketOwner}
  for one in ${unlessUnit}; do [ "$unit" != "$one" ] || owner=ours pid=; done
  for one in ${unlessOwner}; do [ "$owner" != "$one" ] || owner=ours pid=; done
  [ "$owner" = ours ] && [ -z "$pid" ] || problem "taken by \${owner:-an unknown program}\${pid:+ (pid $pid\${unit:+, $unit})}"
fi`,
  }),
  route: ({ to: addresses }) =>
    addresses.map((to) => ({
      name: `route to ${to}`,
      test: sh`if have ip; then output=$(ip route get ${to} 2>&1) || problem "$output"
else grep -q '^[^[:blank:]]*[[:blank:]]00000000[[:blank:]]' /proc/net/route || problem "no default route (ip is not there to look closer)"; fi`,
    })),
  tcp: (endpoints) =>
    endpoints
      .flatMap(({ host, port, ...rest }) =>
        host.flatMap((one) => port.map((its) => ({ ...rest, host: one, port: its }))),
      )
      .map(({ host, port, refused }) => ({
        name: `connection to ${hostPort(host, port)}`,
        test: sh`tcp ${host} ${port} 5
case $? in
  0) ;;
  2) problem "cannot tell: neither nc nor bash is there" ;;
  3) ${refused ? sh`:` : sh`problem "refused: nothing listens there"`} ;;
  *) problem "no answer: filtered, or the machine is down" ;;
esac`,
      })),
  root: () => ({ name: "root", test: sh`[ "$(id -u)" = 0 ] || problem "steps run as $(id -un)"` }),
  kernelMin: (min) => ({
    name: "kernel",
    test: sh`kernel=$(uname -r)
rest=\${kernel%%[!0-9.]*}.
for part in ${min.split(".")}; do
  have=\${rest%%.*} rest=\${rest#*.}
  [ "\${have:-0}" -le "$part" ] || break
  [ "\${have:-0}" -ge "$part" ] || problem "is $kernel, at least "${min}" is needed"
done`,
  }),
  packagesAbsent: (words) => ({
    name: `absent packages ${words.join(" ")}`,
    test: sh`found=
for one in ${words}; do
  if have dpkg-query; then dpkg-query -W -f '\${db:Status-Status}\n' -- "$one" 2>/dev/null | grep -qx installed
  elif have apk; then apk info -e "$one" >/dev/null 2>&1
  elif have rpm; then rpm -q -- "$one" >/dev/null 2>&1
  else false; fi && found="$found $one"
done
[ -z "$found" ] || problem "installed:$found"`,
  }),
  servicesAbsent: (units) => ({
    name: `absent services ${units.join(" ")}`,
    test: sh`found=
have systemctl && for one in ${units}; do
  case $(systemctl show -p ActiveState,UnitFileState -- "$one") in *ActiveState=active* | *=enabled*) found="$found $one" ;; esac
done
[ -z "$found" ] || problem "active or enabled:$found"`,
  }),
  memberOf: ({ cluster, root, leaves, node, id = "", former, folder }) => ({
    name: "cluster",
    test: sh`has= name= was=
[ ! -f ${folder}/ca.crt ] || has=$(sed -e '/^-----END/,$d' -e '/^-----/d' ${folder}/ca.crt | tr -d '\n' | sha256sum | head -c 16)
[ ! -f ${folder}/node.crt ] || ! have openssl ||
  was=$(openssl x509 -in ${folder}/node.crt -noout -ext subjectAltName 2>/dev/null | sed -n 's#.*URI:kcore://\([a-z0-9-]*/node/[A-Za-z0-9._@-]*\).*#\1#p')
name=\${was%%/*} was=\${was##*/}
if [ "\${has:-"${root}"}" != ${root} ] || [ "\${name:-"${cluster}"}" != ${cluster} ]; then
  [ -n "$has" ] && [ "$has" = ${leaves} ] ||
    problem "the machine belongs to the cluster \${name:-of another root} (root \${has:-unknown}), not to "${cluster}"; to take it out of that one: --set move_from=$has"
elif [ -n ${id} ] && [ -n "$was" ]; then
  case ${` ${[id, ...former].join(" ")} `} in *" $was "*) name= ;; esac
  [ -z "$name" ] || problem "the machine was the node $was of this cluster, not "${id}"; to take it over with its data: kcore roster adopt "${node}" $was"
fi
${
  former.length === 0
    ? sh`fact formerId ''`
    : sh`keys=
[ "$was" = ${id} ] || for one in ${folder}/node.crt ${folder}/controller.crt /etc/kcore/controller/controller.crt; do [ ! -f "$one" ] || keys=\${was:-unknown}; done
fact formerId "$keys"`
}
reached=
[ "$was" != ${id} ] || { read -r reached <"$K_STATE/milestones"; } 2>/dev/null
case ,$reached, in *',"node_ready",'*) fact ready yes ;; *) fact ready '' ;; esac`,
  }),
};

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 2 ** 20)} MiB`;
}
