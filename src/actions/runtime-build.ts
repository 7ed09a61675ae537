import { rm } from "node:fs/promises";
import { z } from "zod";
import { tasksAsLines } from "#base/tasks.ts";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { registerMaker } from "#engine/step/blob.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { buildRuntime, cacheFolder } from "#runtime/build.ts";

/**
 * Builds the runtime of nodes, or finds it built, for `nix.profile` to deliver. Nodes of another architecture need a bastion of that architecture.
 */
export const runtimeBuild = defineAction({
  name: "runtime.build",
  summary: "Builds kcore's closed runtime for nodes, once per version; kept in a cache.",
  outputs: ["arch", "narHash", "node", "source", "storePath", "version"],
  args: z.strictObject({}),
  run: (_args, context) => build(context),
  // The build only fills the cache, and a plan must name the store path to be able to say that nothing changes.
  plan: (_args, context) => build(context),
  endsAtStop: true,
});

async function build({ home, note }: ActionContext): Promise<ActionResult> {
  const root = shippedRoot();
  const cache = await cacheFolder(root, home);
  const tasks = tasksAsLines(note);
  const runtime = await buildRuntime({ root, cache, tasks });
  const { storePath, narHash, file, sha256, size, version, node, arch } = runtime;
  registerMaker(file, async () => {
    await rm(file, { force: true });
    await buildRuntime({ root, cache, tasks });
  });
  const source = [{ path: storePath, file, sha256, size }];
  const outputs = { storePath, narHash, source, version, node, arch };
  return { changed: false, outputs };
}
