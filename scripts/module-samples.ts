import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { exampleIn } from "#cli/modules/known-modules.ts";
import { blobOf } from "../src/engine/step/blob.ts";
import { Secret } from "../src/engine/step/secret.ts";
import { argumentsIn } from "../test/support/cases/describe.ts";
import { readTable } from "../test/support/cases/table.ts";

/** The content of every file of a sample. */
export const SAMPLE = "sample\n";

const sha256 = blobOf(SAMPLE).sha256;

const bundle = { file: "/a.gz", sha256, size: 1 };
const signed = { order: '"signed":{},"ownership":{}', epoch: 1 };
const order = { update: "release-1", owner: "bastion-1", signed, own: true };

/** Arguments of modules that, with their examples and cases, reach every text of sh in them and in the fragments. */
const moreArguments: Readonly<Record<string, readonly object[]>> = {
  "directory.managed": [
    { path: "/a", owner: "kcore", group: "adm", mode: "0755", fileMode: "0644", recurse: ["owner", "group", "mode"] },
  ],
  "file.block": [
    { path: "/a", name: "a", content: new Secret("a"), create: true, backup: true, validate: "test -s %s" },
  ],
  "file.downloaded": [
    { path: "/a", url: "https://a/b", sha256, headers: { A: new Secret("b") }, proxy: "http://c:1" },
    { path: "/a", url: "https://a/b", sha256, caFile: "/a.crt" },
  ],
  "filesystem.formatted": [
    { partuuid: "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11", fstype: "xfs", label: "a" },
    { disk: { serial: "S3Z8NB0K" }, partition: "data", fstype: "vfat", label: "A" },
  ],
  "git.cloned": [
    {
      path: "/a",
      url: "ssh://a/b",
      key: new Secret("c"),
      knownHosts: "a ssh-ed25519 AAAA",
      ref: "main",
      update: false,
    },
  ],
  "key.generated": [{ path: "/a.key", certificate: "/a.crt" }],
  "mount.mounted": [
    { path: "/a", source: "UUID=0a0b", fstype: "ext4", persist: "unit" },
    { path: "/a", source: "UUID=0a0b", fstype: "ext4", persist: "unit", state: "absent" },
  ],
  "nix.installed": [
    { method: "tarball", source: "nix-2.24.9-x86_64-linux.tar.xz", sha256 },
    { method: "tarball", source: "nix-2.24.9-x86_64-linux.tar", sha256 },
  ],
  "network.interface": [
    { name: "br0", bridge: { ports: ["eth1"] }, routes: [{ to: "198.51.100.0/24", via: "192.0.2.254" }] },
  ],
  "os.booted": [{ disk: { serial: "S3Z8NB0K" }, boot: false }],
  "reboot.ifRequired": [{ services: true }],
  "runtime.updated": [
    { ...order, to: "reached", target: "github:example/systems/0123456789abcdef0123456789abcdef01234567", tried: true },
    ...["prepared", "booted", "rolled_back"].map((to) => {
      return { ...order, to, target: "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-kcore-0.2.0", bundle };
    }),
  ],
  "unit.managed": [{ name: "a", state: "absent" }],
  "user.managed": [
    { name: "a", group: "4" },
    { name: "a", state: "absent", removeHome: true },
  ],
  "zfs.dataset": [{ name: "a", mountpoint: "/a", properties: { atime: "off", utf8only: "on" } }],
  "zfs.pool": [
    { disks: [{ serial: "a" }], partition: "zfs", encrypted: true, mountpoint: "/a", properties: { autotrim: "on" } },
  ],
};

/** Arguments of a module: those of its documented example, those of its table of cases, and more. */
export function samplesOf(name: string): { example: unknown; cases: readonly unknown[]; more: readonly object[] } {
  const root = join(import.meta.dirname, "..");
  const file = name.replaceAll(/[._]/g, "-");
  const source = readFileSync(join(root, "src/engine/modules", `${file}.ts`), "utf8");
  const table = join(root, "test/modules", `${file}.yaml`);
  return {
    example: (parse(exampleIn(source) ?? "") as Record<string, unknown>)[name],
    cases: existsSync(table) ? argumentsIn(readTable(table)) : [],
    more: moreArguments[name] ?? [],
  };
}
