import { blobOf } from "../src/engine/step/blob.ts";
import { Secret } from "../src/engine/step/secret.ts";

/** What every file of a sample holds. */
export const SAMPLE = "sample\n";

/** Of the text that a sample's files hold. */
const sha256 = blobOf(SAMPLE).sha256;

/** Arguments of modules that, with their examples, reach every text of sh in them and in the fragments. */
export const moreArguments: Readonly<Record<string, readonly object[]>> = {
  "clock.synchronized": [{ wait: 0 }, { service: "chrony" }],
  "authorized_key.present": [
    {
      user: "a",
      keys: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEvHvQH+aUymWiPn6yVl0xaK+K77RBByvV0WFhkg2iyl",
      exclusive: true,
      path: "/etc/ssh/keys/%u",
    },
    { user: "a", keys: [], exclusive: true },
  ],
  "archive.extracted": [
    { path: "/a", archive: "/a.tar.zst" },
    { path: "/a", source: "a.txz", clean: true },
    { path: "/a", source: "a.zip" },
    { path: "/a", source: "a.tar" },
  ],
  "ca.trusted": [{ name: "a", state: "absent" }],
  "container.image": [
    { name: "localhost/a:1", archive: "/a.tar", runtime: "ctr", socket: "/a.sock" },
    { name: "localhost/a:1", pull: "never" },
    { name: `localhost/a@sha256:${sha256}`, state: "absent" },
  ],
  "command.run": [
    { cmd: "a", revert: "b" },
    { cmd: "a", changed: { whenOutput: "a" } },
    { cmd: "a", changed: { whenCode: [2] } },
    { cmd: "a", check: true, stdin: "a" },
  ],
  "cron.managed": [{ name: "a", state: "absent" }],
  "directory.managed": [
    { path: "/a", owner: "kcore", group: "adm", mode: "0755", fileMode: "0644", recurse: ["owner", "group", "mode"] },
  ],
  "disk.health": [{ disk: { serial: "S3Z8NB0K" }, required: true, maxTemperature: 60 }],
  "disk.restored": [
    { vg: "vg_a", lv: "a", size: "1M", source: "a.gz", pieces: [{ offset: 0, length: 512, sha256 }] },
    { array: "a", size: "1M", source: "a.gz", pieces: [{ offset: 0, length: 512, sha256 }] },
  ],
  "fact.assert": [
    {
      that: [
        { os: { id: "debian", version: "12" } },
        { arch: "amd64" },
        { diskCount: 1 },
        { command: ["tar", "xz"] },
        { clock: {} },
        { timeSync: true },
        { tcp: { host: "192.0.2.1", port: 22 } },
        { route: { to: "192.0.2.1" } },
        { root: true },
        { kernelMin: "5.10" },
        { packagesAbsent: "docker" },
        { servicesAbsent: "docker" },
      ],
    },
  ],
  "file.absent": [{ path: "/a", recurse: true }],
  "file.block": [
    { path: "/a", name: "a", content: new Secret("a"), create: true, backup: true, validate: "test -s %s" },
    { path: "/a", name: "a", state: "absent" },
  ],
  "file.line": [
    { path: "/a", line: "a", create: true, insertAfter: "^b" },
    { path: "/a", line: new Secret("a"), insertBefore: "BOF", unique: true },
    { path: "/a", match: "^a", state: "absent" },
  ],
  "file.downloaded": [
    { path: "/a", url: "https://a/b", sha256, headers: { A: new Secret("b") }, proxy: "http://c:1" },
    { path: "/a", url: "https://a/b", sha256, caFile: "/a.crt" },
    { path: "/a", url: "https://a/b", sha256, via: "bastion" },
  ],
  "file.managed": [
    { path: "/etc/a", content: "a", backup: true, validate: "visudo -cf %s" },
    { path: "/etc/a", content: new Secret("a") },
  ],
  "filesystem.formatted": [
    { partuuid: "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11", fstype: "xfs", label: "a" },
    { disk: { serial: "S3Z8NB0K" }, partition: "data", fstype: "vfat", label: "A" },
    { vg: "vg_a", lv: "a" },
    { array: "a" },
    { array: "a", encrypted: true },
  ],
  "git.cloned": [
    { path: "/a", url: "https://a/b", password: new Secret("c"), submodules: true, depth: 1, force: true },
    {
      path: "/a",
      url: "ssh://a/b",
      key: new Secret("c"),
      knownHosts: "a ssh-ed25519 AAAA",
      ref: "main",
      update: false,
    },
    { path: "/a", url: "/b", ref: "0123456789012345678901234567890123456789" },
  ],
  "firewall.rules": [
    { allow: [{ ports: 22, from: "192.0.2.0/24", interfaces: "eth*" }, { protocol: "any" }], rules: "counter" },
    { input: "accept", table: "a" },
    { state: "absent" },
  ],
  "group.managed": [
    { name: "a", state: "absent" },
    { name: "a", gid: 7 },
  ],
  "hostname.set": [{ name: "a", pretty: "A" }],
  "hosts.entry": [{ names: "a", state: "absent" }],
  "http.ready": [{ url: "https://a/", insecure: true }],
  "kernel_module.loaded": [
    { name: "a", options: { x: 1 }, reload: true },
    { name: "a", state: "absent" },
    { name: "a", state: "absent", blacklist: true },
  ],
  "key.generated": [{ path: "/a.key", certificate: "/a.crt" }],
  "limits.set": [{ name: "a", state: "absent" }],
  "luks.opened": [{ disk: { serial: "S3Z8NB0K" }, partition: "data", unlock: "tpm2", pcrs: [7, 0] }],
  "logrotate.managed": [{ name: "a", state: "absent" }],
  "lvm.logical_volume": [
    { vg: "vg_a", name: "pool", type: "thinPool", size: "50%VG" },
    { vg: "vg_a", name: "a", type: "thin", pool: "pool", size: "1G" },
  ],
  "mount.mounted": [
    { path: "/a", source: "UUID=0a0b", state: "absent" },
    { path: "/a", source: "UUID=0a0b", fstype: "ext4", persist: "unit" },
    { path: "/a", source: "UUID=0a0b", fstype: "ext4", persist: "unit", state: "absent" },
  ],
  "nix.installed": [
    { method: "tarball", source: "nix-2.24.9-x86_64-linux.tar.xz", sha256 },
    { method: "tarball", source: "nix-2.24.9-x86_64-linux.tar", sha256 },
  ],
  "network.interface": [
    { name: "eth1", addresses: ["192.0.2.10/24", "2001:db8::10/64"], gateways: ["192.0.2.1"], mtu: 9000 },
    { name: "eth1.10", vlan: { link: "eth1", id: 10 }, dhcp: "ipv4" },
    { name: "bond0", bond: { members: ["eth1", "eth2"] }, backend: "ifupdown", dns: ["192.0.2.53"] },
    { name: "br0", bridge: { ports: ["eth1"] }, routes: [{ to: "198.51.100.0/24", via: "192.0.2.254" }] },
  ],
  "nix.collected": [{ keep: 2, profiles: ["kcore"] }],
  "nix.profile": [
    {
      path: "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-a",
      source: [{ path: "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-a", file: "/a.gz", sha256, size: 1 }],
      narHash: `sha256:${"0".repeat(52)}`,
    },
    {
      path: "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-a",
      source: [{ path: "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-a", file: "/a.gz", sha256, size: 1 }],
    },
    { profile: "/nix/var/nix/profiles/system", generation: 3 },
    { backFrom: "kcore-0.2.0" },
  ],
  "os.booted": [{ disk: { serial: "S3Z8NB0K" }, boot: false }],
  "nixos.installed": [
    {
      disk: { serial: "S3Z8NB0K" },
      flake: { name: "n1", files: [{ path: "hosts/n1/a.nix", file: "/a.nix", sha256, size: 1 }] },
      user: "ops",
      nixpkgs: "path:/a",
      offline: true,
    },
  ],
  "os.installed": [
    {
      disk: { serial: "S3Z8NB0K" },
      image: { file: "/a.tar.gz", sha256, size: 1 },
      hostname: "n1",
      user: "ops",
      authorizedKeys: ["ssh-ed25519 AAAA a"],
      kernelParameters: ["nomodeset"],
    },
    { disk: { serial: "S3Z8NB0K" }, encrypted: true, image: { file: "/a.tar.gz", sha256, size: 1 }, hostname: "n1" },
  ],
  "package.installed": [
    { names: ["xfsprogs", "gdisk=1.0"], updateCache: true },
    { names: ["gdisk"], state: "latest" },
    { names: ["gdisk"], state: "absent", purge: true },
  ],
  "package.repository": [
    { name: "a", uris: "https://a/", suites: "./", trusted: true },
    { name: "a", uris: "https://a/", suites: "./", keyring: "/a.gpg" },
    { name: "a", state: "absent" },
  ],
  "package.upgraded": [{ mode: "full", removals: true }, { mode: "full" }],
  "port.open": [{ port: 80, host: "192.0.2.1", state: "closed" }],
  "reboot.ifRequired": [{ services: true }],
  "runtime.updated": ["reached", "fenced", "prepared", "activated", "booted", "held", "rolled_back"].flatMap((to) => {
    const signed = { statement: "{}", signature: "MEUCIQ==", signer: "-----BEGIN" };
    const order = { to, update: "release-1", owner: "bastion-1", signed, own: true };
    const target = "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-kcore-0.2.0";
    return [
      { ...order, target, bundle: { file: "/a.gz", sha256, size: 1 } },
      { ...order, target: "github:example/systems/0123456789abcdef0123456789abcdef01234567", tried: true },
    ];
  }),
  "script.run": [
    { source: "a.sh", stdin: "a", successCodes: [1] },
    { text: "a", changed: "never" },
    { text: "a", check: true },
  ],
  "service.running": [
    { name: "a", unmask: true, onChange: "reload" },
    { name: "a", runsFrom: "/a" },
  ],
  "service.stopped": [{ name: "a", mask: true }],
  "sudoers.managed": [{ name: "a", state: "absent" }],
  "swap.enabled": [{ vg: "vg_a", lv: "swap", priority: 5 }],
  "swap.managed": [
    { state: "on", size: "1M" },
    { state: "on", size: "1M", path: "/a", priority: 5 },
  ],
  "sysctl.set": [{ name: "vm.swappiness", state: "absent" }],
  "timer.managed": [
    { name: "a", service: "b", onBootSec: "1h" },
    { name: "a", state: "absent" },
  ],
  "unit.managed": [
    { name: "a", state: "absent" },
    { name: "a", content: "[Service]", dropin: "b", enabled: true },
  ],
  "user.managed": [
    { name: "a", password: new Secret("$6$a"), lock: true, group: "adm", groups: ["adm"], append: false },
    { name: "a", group: "4" },
    { name: "a", state: "absent", removeHome: true },
  ],
  "user.password": [
    { name: "a", password: new Secret("$6$a$a") },
    { name: "a", password: new Secret("$6$a$a"), lock: true },
  ],
  "zfs.dataset": [
    { name: "a", mountpoint: "/a", properties: { atime: "off", utf8only: "on" } },
    { name: "b", size: "1G" },
  ],
  "zfs.pool": [
    { disks: [{ serial: "a" }], partition: "zfs", encrypted: true, mountpoint: "/a", properties: { autotrim: "on" } },
  ],
  "wait.for": [{ unit: "a.service" }, { command: "true" }, { absent: "/a" }],
};
