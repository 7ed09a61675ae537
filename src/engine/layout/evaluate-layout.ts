import { dirname, isAbsolute, join } from "node:path";
import { rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { readBytes } from "#engine/yaml/regular-file.ts";
import { KcoreError, type Problem, type SourcePosition } from "#errors/problem.ts";
import { run } from "#base/process.ts";
import { checkLayout } from "./check-layout.ts";
import { translateDisko } from "./disko.ts";
import { LayoutSchema, type Layout } from "./layout-schema.ts";

/** A layout in Nix, and the place in the manifest that gives it. */
export interface NixSource {
  readonly at: SourcePosition;
  readonly nix: { readonly text: string } | { readonly file: string };
}

/** The layout of a source in Nix. @throws KcoreError as `evaluateLayout` does; FILE_UNREADABLE, DISK_LAYOUT_UNSUPPORTED, DISK_LAYOUT_NO_DISKS */
export async function layoutFromNix({ nix, at }: NixSource): Promise<Layout> {
  const path =
    "file" in nix && !isAbsolute(nix.file) ? join(dirname(at.file), nix.file) : "file" in nix ? nix.file : "";
  const name = "file" in nix ? path : "layoutNix";
  const devices = await evaluateLayout("file" in nix ? readBytes(path) : nix.text, { name, at });
  const { layout, unsupported } = translateDisko(devices);
  if (unsupported.length > 0)
    throw new KcoreError(
      unsupported.map(({ path: place, why }) => ({
        code: "DISK_LAYOUT_UNSUPPORTED",
        message: `${name}: ${place}: ${why}`,
        at,
        hint: "leave it out, or make it by a state of your own",
      })),
    );
  const read = LayoutSchema.safeParse(layout);
  if (!read.success)
    throw new KcoreError(
      read.error.issues.map(({ path: place, message }) => ({
        code: "DISK_LAYOUT_INVALID",
        message: `${name}: ${namedPath(place, layout)} ${message.charAt(0).toLowerCase()}${message.slice(1)}`,
        at,
      })),
    );
  const problems: Problem[] = [];
  if (read.data.disks.length === 0)
    problems.push({ code: "DISK_LAYOUT_NO_DISKS", message: `${name}: the layout has no disk`, at });
  checkLayout(read.data, (_, message, hint) =>
    problems.push({ code: "DISK_LAYOUT_INVALID", message: `${name}: ${message}`, at, hint }),
  );
  if (problems.length > 0) throw new KcoreError(problems);
  return read.data;
}

/** A path in the layout with names instead of numbers: `disks.data1.gpt.partitions.kcore0.size`. */
function namedPath(path: readonly PropertyKey[], layout: unknown): string {
  let value = layout;
  return path
    .map((part) => {
      value = (value as Record<PropertyKey, unknown> | undefined)?.[part];
      const { name } = (value ?? {}) as { readonly name?: unknown };
      return typeof part === "number" && typeof name === "string" ? name : String(part);
    })
    .join(".");
}

const evaluationLimitMs = 10_000;
/** The most bytes of a layout as JSON. */
const outputLimit = 1 << 20;

/**
 * The layout is a set, or a function whose arguments have defaults: the use of an argument without a default is an error.
 * Only its `disko.devices` is evaluated.
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

/** Limits the address space to 2 GiB: a layout is small. */
const command = `ulimit -v 2097152; exec nix-instantiate --eval --strict --json --store dummy:// \\
  --option restrict-eval true --option allowed-uris "" --option substituters "" --option allow-import-from-derivation false -I "$1" "$1/kcore.nix"`;

/**
 * The value of `disko.devices` of a layout in Nix, as parsed JSON. Nix evaluates it strictly, offline, without a store, and reads no
 * other file.
 * @throws KcoreError DISK_LAYOUT_NIX_MISSING, DISK_LAYOUT_NIX_FAILED, DISK_LAYOUT_INVALID
 */
export async function evaluateLayout(
  text: string | Uint8Array,
  { name, at, path = process.env["PATH"] ?? "" }: { name: string; at: SourcePosition; path?: string },
): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), "kcore-layout-"));
  const end = new AbortController();
  const leave = (): void => {
    end.abort();
    rmSync(folder, { recursive: true, force: true });
  };
  // Ctrl-C ends the process within the task that evaluates; Nix notices no Ctrl-C meanwhile.
  process.once("exit", leave);
  try {
    await writeFile(join(folder, "layout.nix"), text);
    await writeFile(join(folder, "kcore.nix"), wrapper);
    const home = join(folder, "home");
    const { code, stopped, stdout, stderr } = await run(["/bin/sh", "-c", command, "sh", folder], {
      // This machine's own Nix configuration must have no effect.
      env: { PATH: path, HOME: home, NIX_CONF_DIR: home, NIX_STATE_DIR: home, LC_ALL: "C" },
      limitMs: evaluationLimitMs,
      mostBytes: outputLimit,
      ownGroup: true,
      signal: end.signal,
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
          ? `${name} was not evaluated within ${evaluationLimitMs / 1000} s, or is too large`
          : `${name} cannot be evaluated`,
        at,
        // stderr explains nothing when the output was cut for its size.
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
    process.off("exit", leave);
    leave();
  }
}
