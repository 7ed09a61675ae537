import { rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { type ActionContext, type ActionResult, defineAction } from "#engine/orchestrate/action.ts";
import { registerMaker } from "#engine/step/blob.ts";
import { exportClosure, exportPath } from "#runtime/export-closure.ts";

const args = z.strictObject({
  path: z
    .string()
    .regex(/^\/nix\/store\/[0-9abcdfghijklmnpqrsvwxyz]{32}-[A-Za-z0-9+._?=-]{1,211}$/, "must be a store path")
    .describe("A path in the store of this machine."),
});

/**
 * Exports a path with its closure from the bastion's own Nix store, path by path. `nix.profile` delivers the paths that a node lacks.
 * ```yaml
 * - { id: closure, run: store.export, path: "{{params.path}}", once: true }
 * ```
 */
export const storeExport = defineAction({
  name: "store.export",
  summary: "Exports a path and each path that it needs from the bastion's Nix store; kept in a cache.",
  outputs: ["narHash", "source", "storePath"],
  bastionNames: ["path"],
  args,
  run: exportToCache,
  // The export only fills the cache, and a plan must name the hash to be able to say that nothing changes.
  plan: exportToCache,
});

async function exportToCache(
  { path }: z.output<typeof args>,
  { home, signal, note }: ActionContext,
): Promise<ActionResult> {
  const options = { cache: join(home, "cache", "closures"), signal };
  const outputs = await exportClosure({ path, note, ...options });
  for (const { path: one, file } of outputs.source)
    registerMaker(file, async () => {
      await rm(file, { force: true });
      await exportPath(one, options);
    });
  return { changed: false, outputs: { ...outputs } };
}
