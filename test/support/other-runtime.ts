import { cp, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeBundleFile } from "../../src/cli/update/bundles.ts";
import { runTasks } from "#base/tasks.ts";
import { buildRuntime, cacheFolder, type Runtime } from "#runtime/build.ts";
import type { Bundle } from "#rollout/spec.ts";

const repository = join(import.meta.dirname, "../..");

/** A bundle of another release of kcore. */
export interface OtherBundle {
  readonly file: string;
  readonly bundle: Bundle;
}

export interface OtherRelease {
  readonly version: string;
  /** JavaScript that the node program runs first. */
  readonly first?: string;
}

/**
 * Builds a runtime of another version, in the test's own `folder`: the present program with another number and, optionally, more code first.
 * It takes some ten seconds, since the runtime is compressed like a real one.
 */
export async function makeOtherRuntime(folder: string, { version, first = "" }: OtherRelease): Promise<Runtime> {
  const root = rootOf(folder, version);
  await mkdir(join(root, "dist"), { recursive: true });
  await mkdir(join(root, "node_modules"));
  for (const name of await readdir(join(repository, "node_modules")))
    if (name.startsWith("node-linux-"))
      await symlink(join(repository, "node_modules", name), join(root, "node_modules", name));
  const manifest = JSON.parse(await readFile(join(repository, "package.json"), "utf8")) as { version: string };
  const stamp = `name:"kcore",version:"${manifest.version}"`;
  const program = await readFile(join(repository, "dist", "node-main.js"), "utf8");
  if (program.split(stamp).length !== 2) throw new Error(`the node program does not contain ${stamp} exactly once`);
  const imports = program.startsWith("#!") ? program.indexOf("\n") + 1 : 0;
  const changed = program.replace(stamp, `name:"kcore",version:"${version}"`);
  await writeFile(
    join(root, "dist", "node-main.js"),
    `${changed.slice(0, imports)}${first}\n${changed.slice(imports)}`,
  );
  await writeFile(join(root, "package.json"), JSON.stringify({ ...manifest, version }));
  return buildRuntime({ root, cache: await cacheFolder(root, folder), tasks: runTasks });
}

/** Adds to the runtime of `makeOtherRuntime` the rest of a kcore of that release, and returns its program; `runtime.build` finds the runtime. */
export async function completeOtherKcore(folder: string, version: string): Promise<string> {
  const root = rootOf(folder, version);
  // Copies, since links would lead the program to the present package.json.
  for (const name of ["bin", "dist"])
    await cp(join(repository, name), join(root, name), { recursive: true, force: false });
  for (const name of ["orchestrate", "src", "states", "templates"])
    await symlink(join(repository, name), join(root, name));
  return join(root, "bin", "kcore");
}

function rootOf(folder: string, version: string): string {
  return join(folder, `kcore-${version}`);
}

/** Makes a bundle of a runtime of `makeOtherRuntime`. */
export async function makeOtherBundle(folder: string, release: OtherRelease): Promise<OtherBundle> {
  const { sha256, size, storePath, narHash, arch, version, file: exported } = await makeOtherRuntime(folder, release);
  const bundle: Bundle = { sha256, size, storePath, narHash, version, arch };
  const file = join(folder, `kcore-${version}.bundle`);
  await writeBundleFile(file, { bundle, file: exported, start: 0 });
  return { file, bundle };
}
