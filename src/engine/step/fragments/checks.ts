import { z } from "zod";
import { hostPort } from "../host-port.ts";
import { AbsolutePath, Duration, Size, UnitName } from "../fields.ts";
import { sh, type Sh } from "../sh.ts";
import { saysSynchronized } from "./clock.ts";
import { wholeDisks } from "./disk.ts";
import { listening, socketOwner, tcpFunction } from "./ports.ts";

const Words = z.union([z.string().transform((word) => [word]), z.array(z.string()).min(1)]);
const UnitNames = z.union([UnitName.transform((name) => [name]), z.array(UnitName).min(1)]);
const Port = z.number().int().min(1).max(65_535);
const Address = z.union([z.ipv4(), z.ipv6()]);
const Host = z.string().regex(/^[A-Za-z0-9_.:][A-Za-z0-9_.:-]{0,252}$/, "must be a host name or an address");
const Version = z.string().regex(/^\d+(\.\d+)*$/, "must be a version such as 5.10, in quotes");

/** Seconds since 1970: a number, or a time as ISO 8601 (`run.time`). */
const Time = z.union([
  z.number().positive().transform(Math.floor),
  z.iso.datetime({ offset: true }).transform((text) => Math.floor(Date.parse(text) / 1000)),
]);

/** The first 16 hex digits of the SHA-256 of a root certificate's base64, without line breaks. */
const RootPrint = z.string().regex(/^[0-9a-f]{16}$/, "must be 16 hexadecimal digits");

const Endpoint = z
  .object({ host: Host.describe("A host name or an address."), port: Port.describe("The TCP port.") })
  .meta({ examples: [{ host: "192.0.2.1", port: 9090 }] });

/** One check of fact.assert: exactly one of these keys, and perhaps `when`. */
export const Check = z
  .strictObject({
    os: z
      .strictObject({
        id: Words.describe("ID of /etc/os-release, one or several of which one fits."),
        version: Words.optional().describe("VERSION_ID, in quotes, one or several."),
      })
      .describe("ID and VERSION_ID of /etc/os-release.")
      .meta({ examples: [{ id: ["debian", "ubuntu"] }, { id: "debian", version: "12" }] }),
    arch: Words.describe("Architecture as uname -m says; amd64 and arm64 are understood."),
    cpus: z.number().int().positive().describe("At least so many processors."),
    memory: Size.describe("At least so much memory, as the kernel counts it."),
    freeSpace: z
      .strictObject({
        path: AbsolutePath.describe("A path on the file system in question; it need not be there yet."),
        min: Size.describe("So much must be free."),
      })
      .describe("At least so much space free where path is.")
      .meta({ examples: [{ path: "/var/lib", min: "10G" }] }),
    diskCount: z.number().int().positive().describe("At least so many whole disks."),
    command: Words.describe("Programs that are on PATH."),
    clock: z
      .strictObject({
        now: Time.optional().describe(
          "The right time: seconds since 1970, or ISO 8601 such as run.time; else the engine's.",
        ),
        maxSkew: Duration.default(300).describe("So far from it is a problem."),
        warn: Duration.default(5).describe("So far from it is told."),
      })
      .describe("Clock near the bastion's (now; else the time the engine gives).")
      .meta({ examples: [{ maxSkew: "30s", warn: "5s" }, { now: "2026-01-31T12:00:00Z" }] }),
    timeSync: z.literal(true).describe("The clock is kept by a time service."),
    portFree: z
      .strictObject({
        port: Port.describe("The TCP port."),
        unlessUnit: UnitNames.optional().describe("Units whose listening is fine."),
        unlessOwner: Words.optional().describe("Programs whose listening is fine, by their name."),
      })
      .describe("Nobody else listens on a TCP port.")
      .meta({
        examples: [
          { port: 9090, unlessUnit: "kcore-controller" },
          { port: 22, unlessOwner: ["sshd", "systemd"] },
        ],
      }),
    route: z
      .strictObject({
        to: z
          .union([Address.transform((address) => [address]), z.array(Address)])
          .describe("An IPv4 or IPv6 address, or a list of them."),
      })
      .describe("There is a route to an address, or to each of a list.")
      .meta({ examples: [{ to: "192.0.2.1" }] }),
    tcp: z
      .union([Endpoint.transform((endpoint) => [endpoint]), z.array(Endpoint)])
      .describe("The node can connect to a TCP port, or to each of a list."),
    root: z.literal(true).describe("Steps run as root, by login or sudo."),
    kernelMin: Version.describe("Kernel at least of this version."),
    packagesAbsent: Words.describe("Packages that are not installed."),
    servicesAbsent: UnitNames.describe("Units that are neither active nor enabled."),
    memberOf: z
      .strictObject({
        cluster: z.string().describe("The cluster's name."),
        root: RootPrint.describe("The cluster's root, as pki.checkPassphrase gives it."),
        leaves: z
          .union([RootPrint, z.literal("")])
          .default("")
          .describe("The root of the cluster that the machine may leave."),
        node: z.string().default("").describe("The node's name in the roster."),
        id: z.string().optional().describe("The node's id; without it any id will do."),
        former: z.array(z.string()).default([]).describe("The node's former ids, under which it was removed."),
        folder: AbsolutePath.default("/etc/kcore/certs").describe("Where the node's certificates lie."),
      })
      .describe("The node is in no other cluster of kcore's.")
      .meta({
        examples: [
          { cluster: "lab", root: "9f2c4e1b77d3a0c5" },
          { cluster: "lab", root: "9f2c4e1b77d3a0c5", leaves: "d9cae0dbdbf078b2", folder: "/etc/kcore/certs" },
          { cluster: "lab", root: "9f2c4e1b77d3a0c5", node: "n2", id: "n2-id", former: ["n1-id"] },
        ],
      }),
    when: z.boolean().describe("Left out where this is false."),
  })
  .partial()
  .refine(
    (check) => Object.keys(check).filter((key) => key !== "when").length === 1,
    "give exactly one check in each entry",
  )
  .meta({
    examples: [
      { os: { id: ["debian", "ubuntu"], version: "12" } },
      { arch: "amd64" },
      { cpus: 2 },
      { memory: "2G" },
      { freeSpace: { path: "/var/lib", min: "10G" } },
      { diskCount: 2 },
      { command: ["tar", "gzip"] },
      { clock: { maxSkew: "30s" } },
      { timeSync: true },
      { portFree: { port: 9090, unlessUnit: "kcore-controller" } },
      { route: { to: "192.0.2.1" } },
      { tcp: { host: "192.0.2.1", port: 9090 } },
      { root: true },
      { kernelMin: "5.10" },
      { packagesAbsent: "docker.io" },
      { servicesAbsent: "docker", when: true },
      { memberOf: { cluster: "lab", root: "9f2c4e1b77d3a0c5" } },
    ],
  });
export type Check = z.output<typeof Check>;

export interface NamedCheck {
  /** The name of the fact. */
  readonly name: string;
  /** Calls `problem TEXT` if the check does not hold. */
  readonly test: Sh;
}

type Makers = {
  readonly [Kind in Exclude<keyof Check, "when">]-?: (value: NonNullable<Check[Kind]>) => NamedCheck | NamedCheck[];
};

/** The facts and the sh of one entry: none where `when` is false, several for a list. */
export function checksOf({ when = true, ...check }: Check): readonly NamedCheck[] {
  const [kind, value] = Object.entries(check)[0] ?? ["root", true];
  // The schema ties the value's type to its key; TypeScript cannot follow that through the table.
  return when ? [(makers[kind as keyof Makers] as (value: unknown) => NamedCheck | NamedCheck[])(value)].flat() : [];
}

/** True when the text in a variable is one of these words. */
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
    // The lab's disks are loops with a name of their own; other loops are files in use.
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
      test: sh`if have ip; then said=$(ip route get ${to} 2>&1) || problem "$said"
else grep -q '^[^[:blank:]]*[[:blank:]]00000000[[:blank:]]' /proc/net/route || problem "no default route (ip is not there to look closer)"; fi`,
    })),
  tcp: (endpoints) =>
    endpoints.map(({ host, port }) => ({
      name: `connection to ${hostPort(host, port)}`,
      test: sh`${tcpFunction}
tcp ${host} ${port} 5
case $? in 0) ;; 2) problem "cannot tell: neither nc nor bash is there" ;; *) problem "no connection" ;; esac`,
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
}`,
  }),
};

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 2 ** 20)} MiB`;
}
