import { blobOf } from "../src/engine/step/blob.ts";
import { Secret } from "../src/engine/step/secret.ts";

/** What every file of a sample holds. */
export const SAMPLE = "sample\n";

/** Of the text that a sample's files hold. */
const sha256 = blobOf(SAMPLE).sha256;

/** Arguments of modules that, with their examples, reach every text of sh in them and in the fragments. */
export const moreArguments: Readonly<Record<string, readonly object[]>> = {
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
  "firewall.rules": [
    { allow: [{ ports: 22, from: "192.0.2.0/24", interfaces: "eth*" }, { protocol: "any" }], rules: "counter" },
    { input: "accept", table: "a" },
    { state: "absent" },
  ],
  "group.managed": [
    { name: "a", state: "absent" },
    { name: "a", gid: 7 },
  ],
  "http.ready": [{ url: "https://a/", insecure: true }],
  "key.generated": [{ path: "/a.key", certificate: "/a.crt" }],
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
  "port.open": [{ port: 80, host: "192.0.2.1", state: "closed" }],
  "reboot.ifRequired": [{ services: true }],
  "script.run": [
    { source: "a.sh", stdin: "a", successCodes: [1] },
    { text: "a", changed: "never" },
    { text: "a", check: true },
  ],
  "service.running": [{ name: "a", unmask: true, onChange: "reload" }],
  "service.stopped": [{ name: "a", mask: true }],
  "sudoers.managed": [{ name: "a", state: "absent" }],
  "swap.enabled": [{ vg: "vg_a", lv: "swap", priority: 5 }],
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
  "zfs.dataset": [
    { name: "a", mountpoint: "/a", properties: { atime: "off", utf8only: "on" } },
    { name: "b", size: "1G" },
  ],
  "zfs.pool": [
    { disks: [{ serial: "a" }], partition: "zfs", encrypted: true, mountpoint: "/a", properties: { autotrim: "on" } },
  ],
  "wait.for": [{ unit: "a.service" }, { command: "true" }, { absent: "/a" }],
};
