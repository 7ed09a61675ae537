import type { z } from "zod";
import { placeOf } from "#engine/yaml/issues.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import type { Problem, SourcePosition } from "#errors/problem.ts";
import { checkLayout } from "#engine/layout/check-layout.ts";
import type { NixSource } from "#engine/layout/evaluate-layout.ts";
import type { Layout, Path } from "#engine/layout/layout-schema.ts";
import { withReason } from "#engine/layout/reasons.ts";
import type { DiskLayoutSchema } from "./manifest-schemas.ts";

/** A `DiskLayout`: a node, and a layout, or the Nix text or file that becomes one. */
export interface WantedLayout {
  readonly node: { readonly name: string; readonly at: SourcePosition };
  readonly layout: Layout | NixSource;
}

const layoutKeys = ["diskLayout", "layoutNix", "layoutNixFile"] as const;

/** Reads a `DiskLayout` once its schema accepts it. Adds contradictions to `problems`, and also the lack of a layout. */
export function wantedLayout(
  { spec }: z.output<typeof DiskLayoutSchema>,
  node: SourceNode,
  problems: Problems,
): WantedLayout {
  const place = (path: Path): SourcePosition => placeOf(node, ["spec", ...path]);
  const refuse = (problem: Problem): void => problems.add(withReason(problem));
  const given = layoutKeys.filter((form) => spec[form] !== undefined);
  if (given.length !== 1)
    refuse({
      code: "DISK_LAYOUT_INVALID",
      message: `a layout is told by exactly one of ${layoutKeys.join(", ")}, not by ${given.join(" and ") || "none"}`,
      at: place(given.slice(1, 2)),
      hint: given.length === 0 ? "diskLayout: { disks: […] }" : "keep one of them",
    });
  const { diskLayout, layoutNix, layoutNixFile } = spec;
  if (diskLayout) {
    if (diskLayout.disks.length === 0)
      refuse({
        code: "DISK_LAYOUT_NO_DISKS",
        message: "the layout has no disk",
        at: place(["diskLayout", "disks"]),
        hint: "disks: [{ name: data1, device: /dev/disk/by-id/…, gpt: { partitions: […] } }]",
      });
    checkLayout(diskLayout, (path, message, hint) =>
      refuse({ code: "DISK_LAYOUT_INVALID", message, at: place(["diskLayout", ...path]), hint }),
    );
  }
  const nix = layoutNix === undefined ? { file: layoutNixFile ?? "" } : { text: layoutNix };
  return {
    node: { name: spec.nodeId, at: place(["nodeId"]) },
    layout: diskLayout ?? { at: place([layoutNix === undefined ? "layoutNixFile" : "layoutNix"]), nix },
  };
}
