import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "#base/process.ts";
import { KcoreError, type SourcePosition } from "#errors/problem.ts";

/** Milliseconds that an evaluation may take. */
const longest = 10_000;
/** Bytes of a layout as JSON. */
const largest = 1 << 20;

/**
 * The layout is a set, or a function that gets its own defaults: an argument without one is refused as soon as it is used. `disko.devices` of it is
 * all that is looked at.
 */
const wrapper = `let
  given = import ./layout.nix;
  arguments = if builtins.isFunction given then builtins.functionArgs given else { };
  needed = builtins.filter (name: !arguments.\${name}) (builtins.attrNames arguments);
  refuse = name: { inherit name; value = throw "kcore gives a layout no argument \${name}"; };
  layout = if builtins.isFunction given then given (builtins.listToAttrs (map refuse needed)) else given;
in
layout.disko.devices or null
`;

/** Memory is limited too (KiB): a layout is small. */
const command = `ulimit -v 2097152; exec nix-instantiate --eval --strict --json --store dummy:// \\
  --option restrict-eval true --option allowed-uris "" --option substituters "" --option allow-import-from-derivation false -I "$1" "$1/kcore.nix"`;

/**
 * `disko.devices` of a layout in Nix, as JSON would have it. It is evaluated strictly, offline, without a store, and reads no other file.
 * @throws KcoreError DISK_LAYOUT_NIX_MISSING, DISK_LAYOUT_NIX_FAILED, DISK_LAYOUT_INVALID
 */
export async function evaluateLayout(
  text: string | Uint8Array,
  { name, at, path = process.env["PATH"] ?? "" }: { name: string; at: SourcePosition; path?: string },
): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), "kcore-layout-"));
  try {
    await writeFile(join(folder, "layout.nix"), text);
    await writeFile(join(folder, "kcore.nix"), wrapper);
    const home = join(folder, "home");
    const { code, stopped, stdout, stderr } = await run(["/bin/sh", "-c", command, "sh", folder], {
      // Nothing of this machine's own configuration of Nix counts.
      env: { PATH: path, HOME: home, NIX_CONF_DIR: home, NIX_STATE_DIR: home, LC_ALL: "C" },
      limitMs: longest,
      mostBytes: largest,
      ownGroup: true,
    });
    if (code === 127)
      throw new KcoreError({
        code: "DISK_LAYOUT_NIX_MISSING",
        message: "a layout in Nix is evaluated here, and this machine has no nix-instantiate",
        at,
        hint: "apt install nix-bin, or write it as spec.diskLayout",
      });
    if (code !== 0)
      throw new KcoreError({
        code: "DISK_LAYOUT_NIX_FAILED",
        message: stopped
          ? `${name} was not evaluated within ${longest / 1000} s, or is too large`
          : `${name} cannot be evaluated`,
        at,
        // The half of an output that is too large tells nothing.
        detail: stopped === "size" ? "" : stderr.replaceAll(join(folder, "layout.nix"), name).trim(),
      });
    const devices = JSON.parse(stdout) as unknown;
    if (devices === null)
      throw new KcoreError({
        code: "DISK_LAYOUT_INVALID",
        message: `${name} holds no disko.devices`,
        at,
        hint: '{ disko.devices.disk.data1 = { type = "disk"; device = "/dev/disk/by-id/…"; content = { type = "gpt"; … }; }; }',
      });
    return devices;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
