# Gathers a node's facts (POSIX sh and awk over /proc, /sys and /run/udev; other programs only if the node has them). The catalogue
# (src/engine/facts/catalogue.ts, docs/facts.md) names them. A list has a row a line, with tab-separated columns in
# the catalogue's order. Unknown facts are left out, or empty. Follows disk-inventory.sh. Builtins read most files: few processes.

k_fact() { ! k_first "$2" || fact "$1" "$k_value"; }
# k_truth NAME: sets the fact to true or false by the exit status before it.
k_truth() { if [ $? = 0 ]; then fact "$1" true; else fact "$1" false; fi; }

k_fact hostname /proc/sys/kernel/hostname
k_fact machineId /etc/machine-id
k_fact bootId /proc/sys/kernel/random/boot_id
k_fact kernel.release /proc/sys/kernel/osrelease
k_fact kernel.version /proc/sys/kernel/version
k_arch=$(uname -m)
fact kernel.arch "$k_arch"
case $k_arch in
  x86_64) fact arch amd64 ;;
  aarch64) fact arch arm64 ;;
  armv[67]*) fact arch armhf ;;
  i[3-6]86) fact arch i386 ;;
  ppc64le) fact arch ppc64el ;;
  *) fact arch "$k_arch" ;;
esac
if [ -d /run/systemd/system ]; then
  fact init systemd
elif [ -d /run/openrc ]; then
  fact init openrc
elif [ -d /run/runit ]; then
  fact init runit
else
  fact init other
fi
for k_tool in apt-get dnf yum zypper pacman apk opkg; do
  if k_has "$k_tool"; then fact packageManager "${k_tool%-get}" && break; fi
done
[ -e /etc/NIXOS ]
k_truth nixos
[ -d /nix/store ]
k_truth nix
if k_first /sys/fs/selinux/enforce; then
  case $k_value in 1) fact security.selinux enforcing ;; *) fact security.selinux permissive ;; esac
else
  fact security.selinux disabled
fi
k_first /sys/module/apparmor/parameters/enabled && [ "$k_value" = Y ]
k_truth security.apparmor
if [ -d /sys/firmware/efi ]; then fact firmware efi; else fact firmware other; fi
k_fact hardware.serial /sys/class/dmi/id/product_serial

k_container=
if k_first /run/systemd/container || k_first /run/host/container-manager; then
  k_container=$k_value
elif [ -e /.dockerenv ]; then
  k_container=docker
elif [ -e /run/.containerenv ]; then
  k_container=podman
elif k_first /proc/1/environ; then
  case $k_value in *container=lxc*) k_container=lxc ;; esac
fi

IFS=' ' read -r k_value _ </proc/uptime && fact uptimeSeconds "${k_value%.*}"
k_value=$(date '+%s %z')
fact clock.epochSeconds "${k_value% *}"
fact clock.utcOffset "${k_value#* }"
k_value=
[ ! -L /etc/localtime ] || k_value=$(readlink /etc/localtime)
case $k_value in
  *zoneinfo/*) fact clock.timeZone "${k_value##*zoneinfo/}" ;;
  *) k_fact clock.timeZone /etc/timezone || : ;;
esac

# The lines that awk makes facts of: the names of devices, and the output of programs. The last program takes the shell's place.
k_devices() {
  for k_net in /sys/class/net/*; do
    [ ! -d "$k_net" ] || if [ -e "$k_net/device" ]; then echo "net ${k_net##*/} true"; else echo "net ${k_net##*/} false"; fi
  done
  k_block_devices
  echo df
  df -kP /
  ! k_has ip || {
    echo ip
    exec ip -o addr show
  }
} 2>/dev/null

k_devices | k_container=$k_container k_arch=$k_arch k_lead=${k_lead:-F} awk "$k_disks_awk"'
  # fact(): as in step-functions.sh, for values without line breaks; list() gets rows with escaped line breaks.
  function fact(name, value,  i, c, out) {
    if (value == "") return
    if (index(value, "\\")) {
      for (i = 1; i <= length(value); i++) { c = substr(value, i, 1); out = out (c == "\\" ? "\\\\" : c) }
      value = out
    }
    print lead " " name "=" value
  }
  function list(name, text) { print lead " " name "=" text }
  function row(text, line) { return text == "" ? line : text "\\n" line }
  function hex(s,  i, n) { n = 0; for (i = 1; i <= length(s); i++) n = n * 16 + index("0123456789abcdef", substr(tolower(s), i, 1)) - 1; return n }
  # The kernel prints an IPv4 address as a number of its own byte order.
  function v4(s,  i, a) {
    for (i = 1; i <= 7; i += 2) a = big ? a "." hex(substr(s, i, 2)) : hex(substr(s, i, 2)) "." a
    return big ? substr(a, 2) : substr(a, 1, length(a) - 1)
  }
  function prefix(s,  i, n, bits) { n = 0; for (i = 1; i <= 8; i++) for (bits = hex(substr(s, i, 1)); bits > 0; bits = int(bits / 2)) n += bits % 2; return n }
  # RFC 5952: without leading zeros, the longest row of zeros as ::
  function v6(s,  i, j, best, at, a, part) {
    for (i = 0; i < 8; i++) { part[i] = substr(s, i * 4 + 1, 4); sub(/^0+/, "", part[i]); if (part[i] == "") part[i] = "0" }
    best = 1; at = -1
    for (i = 0; i < 8; i++) { for (j = i; j < 8 && part[j] == "0"; j++); if (j - i > best) { best = j - i; at = i } }
    for (i = 0; i < 8; i++) if (i == at) { a = a "::"; i += best - 1 } else a = a (a == "" || a ~ /:$/ ? "" : ":") part[i]
    return a
  }
  BEGIN { lead = ENVIRON["k_lead"]; big = ENVIRON["k_arch"] ~ /^(s390|ppc$|ppc64$|sparc|parisc|mips$|mips64$|m68k|armv.*b$|aarch64_be)/ }
  $1 == "net" && NF == 3 && !part { net[++nets] = $2; physical[$2] = $3; next }
  NF == 1 && ($1 == "df" || $1 == "ip") { part = $1; next }
  part == "df" { total = $(NF - 4); free = $(NF - 2); next }
  part == "ip" {
    isIp = 1
    name = $2; sub(/@.*/, "", name); sub(/:$/, "", name); address = $4; bare = address; sub(/\/.*/, "", bare)
    if ($3 == "inet") { ip4[name] = words(ip4[name], address); bare4[name] = row(bare4[name], bare) }
    if ($3 == "inet6") { ip6[name] = words(ip6[name], address); if (bare !~ /^fe80:/) bare6[name] = row(bare6[name], bare) }
  }
  END {
    file = "/etc/os-release"
    if ((getline l < file) < 0) file = "/usr/lib/os-release"
    close(file)
    while ((getline l < file) > 0) { at = index(l, "="); if (at) os[substr(l, 1, at - 1)] = unquote(substr(l, at + 1)) }
    fact("os.id", os["ID"]); fact("os.version", os["VERSION_ID"]); fact("os.codename", os["VERSION_CODENAME"])
    fact("os.name", os["PRETTY_NAME"]); fact("os.like", os["ID_LIKE"])

    while ((getline l < "/proc/cpuinfo") > 0) {
      at = index(l, ":"); key = substr(l, 1, at - 1); sub(/[ \t]+$/, "", key); value = clean(substr(l, at + 1))
      if (l ~ /^processor/) { count++; chip = "" }
      else if (key == "physical id") { chip = value; if (!(chip in chips)) { chips[chip] = 1; sockets++ } }
      else if (key == "core id") { if (!((chip, value) in core)) { core[chip, value] = 1; cores++ } }
      else if (key == "model name" && model == "") model = value
      else if (key == "vendor_id" && vendor == "") vendor = value
      else if (key == "flags" && (" " value " ") ~ / hypervisor /) guest = 1
    }
    fact("cpu.count", count); fact("cpu.cores", cores); fact("cpu.sockets", sockets); fact("cpu.vendor", vendor); fact("cpu.model", model)

    while ((getline l < "/proc/meminfo") > 0) { split(l, w, /[: ]+/); mem[w[1]] = w[2] }
    fact("memory.totalKiB", mem["MemTotal"]); fact("memory.availableKiB", mem["MemAvailable"])
    fact("swap.totalKiB", mem["SwapTotal"]); fact("swap.freeKiB", mem["SwapFree"])

    maker = first("/sys/class/dmi/id/sys_vendor"); product = first("/sys/class/dmi/id/product_name")
    if (product == "") product = first("/proc/device-tree/model")
    fact("hardware.vendor", maker); fact("hardware.product", product)
    said = maker " " product
    kind = said ~ /VMware/ ? "vmware" : said ~ /VirtualBox|innotek/ ? "oracle" : said ~ /Microsoft.*Virtual/ ? "microsoft" : said ~ /Xen/ ? "xen" : ""
    if (kind == "") kind = said ~ /Amazon EC2/ ? "amazon" : said ~ /Google/ ? "google" : said ~ /QEMU|KVM|OpenStack|linux,dummy-virt/ ? "qemu" : ""
    # Clouds rent out bare machines, too: there the processor decides.
    if (kind ~ /amazon|google/ && !guest && ENVIRON["k_arch"] == "x86_64") kind = ""
    if (kind == "" && guest) kind = "other"
    if (ENVIRON["k_container"] != "") kind = ENVIRON["k_container"]
    fact("virtualization.type", ENVIRON["k_container"] != "" ? "container" : kind != "" ? "vm" : "none"); fact("virtualization.name", kind)

    while ((getline l < "/proc/mounts") > 0) { split(l, w, " "); if (w[2] == "/") { device = w[1]; type = w[3] } }
    fact("root.device", clean(device)); fact("root.filesystem", type); fact("root.totalKiB", total); fact("root.freeKiB", free); fact("rootFree.KiB", free)

    # At most 256 routes: a router may know the whole internet.
    lowest = -1
    while ((getline l < "/proc/net/route") > 0 && ++lines <= 257) {
      split(l, w, /[ \t]+/)
      if (w[1] == "Iface") continue
      if (w[2] == "00000000" && w[8] == "00000000" && (lowest < 0 || w[7] + 0 < lowest)) { lowest = w[7] + 0; route = w[1]; gateway = w[3] == "00000000" ? "" : v4(w[3]) }
      routes = row(routes, v4(w[2]) "/" prefix(w[8]) "\t" (w[3] == "00000000" ? "" : v4(w[3])) "\t" w[1] "\t" w[7])
    }
    lines = 0; lowest = -1
    while ((getline l < "/proc/net/ipv6_route") > 0 && ++lines <= 10000) {
      split(l, w, /[ \t]+/)
      if (w[1] !~ /^0+$/ || w[2] != "00" || w[5] ~ /^0+$/ || (lowest >= 0 && hex(w[6]) >= lowest)) continue
      lowest = hex(w[6]); gateway6 = v6(w[5]); route6 = w[10]
    }
    if (route == "") route = route6
    for (i = 1; i <= nets && route == ""; i++) if (net[i] != "lo") route = net[i]
    fact("network.interface", route); fact("network.gateway", gateway); fact("network.gateway6", gateway6)
    own4 = bare4[route]; own6 = bare6[route]
    for (i = 1; i <= nets; i++) {
      n = net[i]
      faces = row(faces, n "\t" first("/sys/class/net/" n "/address") "\t" first("/sys/class/net/" n "/mtu") "\t" first("/sys/class/net/" n "/operstate") "\t" physical[n] "\t" (isIp ? ip4[n] "\t" ip6[n] : "?\t?"))
      if (n == "lo" || n == route) continue
      if (bare4[n] != "") own4 = row(own4, bare4[n])
      if (bare6[n] != "") own6 = row(own6, bare6[n])
    }
    if (isIp) { list("network.addresses", own4); list("network.addresses6", own6) }
    list("network.interfaces", faces); list("network.routes", routes)
    while ((getline l < "/etc/resolv.conf") > 0) {
      c = split(l, w, /[ \t]+/)
      if (w[1] == "nameserver") servers = row(servers, clean(w[2]))
      if (w[1] == "search" || w[1] == "domain") { search = ""; for (i = 2; i <= c; i++) if (w[i] != "") search = row(search, clean(w[i])) }
    }
    list("network.nameservers", servers); list("network.search", search)

    for (i = 1; i <= disks; i++) {
      n = disk[i]
      readDisk(n)
      found = fstype != "" ? fstype : pttype != "" ? pttype : isParted[n] ? "partitions" : ""
      type = n ~ /^loop/ ? "loop" : n ~ /^md/ ? "raid" : n ~ /^dm-/ ? "mapped" : "disk"
      rows = row(rows, n "\t" bytes "\t" serial "\t" wwn "\t" model "\t" type "\t" flag(folder "/queue/rotational") "\t" flag(folder "/removable") "\t" flag(folder "/ro") "\t" found)
    }
    list("disks", rows)
    rows = ""
    for (i = 1; i <= parts; i++) {
      read(pname[i], pdisk[i])
      rows = row(rows, pname[i] "\t" pdisk[i] "\t" bytes "\t" (fstype != "" ? fstype : pttype) "\t" uuid "\t" label)
    }
    list("partitions", rows)
  }' >&3 || exit 98
