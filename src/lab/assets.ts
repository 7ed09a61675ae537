import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHash } from "node:crypto";
import { chmod, cp, mkdir, readFile, readdir, symlink } from "node:fs/promises";

/**
 * The folder of the lab's own sh files and of the layer that every Debian node gets.
 * The folder is looked for from this file upward, because the shipped command line is one bundle in `dist/`.
 */
export function assetFolder(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const assets = join(folder, "src", "lab", "files");
    if (existsSync(assets)) return assets;
    if (folder === dirname(folder)) throw new Error("src/lab/files is missing from this kcore package");
  }
}

/** Programs that change partition tables: after each of them, the lab's partition helper runs. */
const tableTools = ["sgdisk", "sfdisk", "wipefs"];

/** Makes the layer in `folder`: its files, and links that would be dead or harmful in the source tree. */
export async function makeLayer(folder: string): Promise<void> {
  await cp(join(assetFolder(), "layer"), folder, { recursive: true });
  const tools = join(folder, "usr/local/lib/lab");
  for (const name of await readdir(tools)) await chmod(join(tools, name), 0o755);
  await mkdir(join(folder, "usr/local/sbin"), { recursive: true });
  for (const tool of tableTools) {
    await symlink("../lib/lab/table-tool", join(folder, "usr/local/sbin", tool));
  }
  const units = join(folder, "etc/systemd/system");
  // A coldplug of the whole host from each node would be a storm of events to all nodes.
  await symlink("/dev/null", join(units, "systemd-udev-trigger.service"));
  await mkdir(join(units, "sysinit.target.wants"));
  await symlink("../lab-coldplug.service", join(units, "sysinit.target.wants/lab-coldplug.service"));
}

/** A hash of all inputs of the layer. */
export async function hashLayer(): Promise<string> {
  const folder = join(assetFolder(), "layer");
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return hashTexts(
    ...tableTools,
    ...(await Promise.all(files.map(async (file) => `${file.slice(folder.length)} ${await readFile(file, "utf8")}`))),
  );
}

/** A hash of texts: 12 hexadecimal digits. */
export function hashTexts(...parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 12);
}
