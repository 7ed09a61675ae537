import { dirname, isAbsolute, join } from "node:path";
import { readBytes } from "#engine/yaml/read.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { Manifest } from "../manifests/read-manifests.ts";
import type { NixSource } from "../manifests/disk-layout-manifest.ts";
import { checkLayout } from "./check-layout.ts";
import { translateDisko } from "./disko.ts";
import { LayoutSchema, type Layout } from "./layout-schema.ts";
import { evaluateLayout } from "./nix-layout.ts";
import { refusal } from "./reasons.ts";

/**
 * The manifests, with layouts in Nix evaluated into the words of `spec.diskLayout`. @throws KcoreError with the
 * problems of all of them
 */
export async function settleLayouts(manifests: readonly Manifest[]): Promise<readonly Manifest[]> {
  const problems: Problem[] = [];
  const settled: Manifest[] = [];
  for (const manifest of manifests) {
    if (manifest.kind !== "DiskLayout" || !("nix" in manifest.layout)) {
      settled.push(manifest);
      continue;
    }
    try {
      settled.push({ ...manifest, layout: await settle(manifest.layout) });
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new KcoreError(problems.map((problem) => refusal(problem)));
  return settled;
}

async function settle({ nix, at }: NixSource): Promise<Layout> {
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
        message: `${name}: ${shown(place, layout)} ${message.charAt(0).toLowerCase()}${message.slice(1)}`,
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

/** `disks.data1.gpt.partitions.kcore0.size`: names instead of numbers. */
function shown(path: readonly PropertyKey[], layout: unknown): string {
  let value = layout;
  return path
    .map((part) => {
      value = (value as Record<PropertyKey, unknown> | undefined)?.[part];
      const { name } = (value ?? {}) as { readonly name?: unknown };
      return typeof part === "number" && typeof name === "string" ? name : String(part);
    })
    .join(".");
}
