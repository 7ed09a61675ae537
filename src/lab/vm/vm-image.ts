import { mkdir, readFile, readdir, rm } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { debsOf, type Apt } from "../apt.ts";
import { assetFolder, hashTexts } from "../assets.ts";
import { boundCommand, mustRun, runCommand } from "../run-command.ts";
import { nodeFailed } from "../processes.ts";
import { runOnConsole } from "./console-shell.ts";
import { machineKind, qemuArguments, qemuVersion, sockets } from "./qemu.ts";
import { openQmp, type Qmp } from "./qmp.ts";

/** Milliseconds that the machine to be saved may take to boot. */
const bootLimitMs = 1_200_000;

/** Debian's kernel for virtual machines, and the program of the initrd. */
const vmImagePackages = ["linux-image-cloud-amd64", "busybox-static"];

/** A hash of the inputs of a machine's image, without its Debian tree. */
export async function hashVmImage(): Promise<string> {
  const assets = assetFolder();
  const inside = await readdir(join(assets, "vm"), { recursive: true, withFileTypes: true });
  const files = inside.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const scripts = ["make-vm-image", "spare-units", "vm-init"].map((name) => join(assets, name));
  const paths = [...scripts, ...files.toSorted()];
  return hashTexts(...vmImagePackages, ...(await Promise.all(paths.map((path) => readFile(path, "utf8")))));
}

/** Makes kernel, initrd and root file system in `folder` from a Debian tree, and removes the tree. */
export async function makeVmImage(folder: string, tree: string, apt: Apt): Promise<void> {
  const archive = `${folder}.archive`;
  await apt.download({ packages: vmImagePackages, folder: archive });
  const debs = await debsOf(archive);
  const find = (name: RegExp): string => debs.find((path) => name.test(path)) ?? "";
  const kernel = find(/\/linux-image-\d[^/]*-cloud-amd64_/);
  const busybox = find(/\/busybox-static_/);
  await mustRun(...boundCommand(join(assetFolder(), "make-vm-image"), [tree, kernel, busybox, assetFolder(), folder]));
  await rm(archive, { recursive: true });
}

/** A hash of the inputs of a saved state: the machine, QEMU and this machine's clock. */
export async function hashGolden(image: string): Promise<string> {
  return hashTexts(image, await qemuVersion(), ...(await machineKind()));
}

/**
 * Boots a machine from an image, without a name, an address or disks, and saves it with its memory: `root.qcow2` and `state`.
 * Throws `LAB_NODE_FAILED` if it does not come up.
 */
export async function makeGolden(folder: string, image: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of ["root.qcow2", "state"]) await rm(join(folder, name), { force: true });
  await makeRoot(folder, join(image, "root.img"), "raw");
  const qemu = { folder, image, id: randomUUID(), mac: "52:54:00:00:00:01", disks: [] };
  const command = boundCommand("qemu-system-x86_64", await qemuArguments(qemu));
  let ended: string | undefined;
  const whole = runCommand(...command, { timeout: bootLimitMs }).then(({ stderr }) => (ended = stderr));
  const lives = (): Promise<boolean> => Promise.resolve(ended === undefined);
  const onConsole = (line: string): Promise<string> =>
    runOnConsole(join(folder, sockets.console), line, { timeout: bootLimitMs, lives });
  let monitor: Qmp | undefined;
  try {
    monitor = await openQmp(join(folder, sockets.monitor), lives);
    await onConsole("systemctl is-system-running --wait");
    await onConsole("sync; echo 3 >/proc/sys/vm/drop_caches");
    await monitor.execute("stop");
    await monitor.execute("migrate-set-parameters", { "max-bandwidth": 10_000_000_000 });
    await monitor.execute("migrate-set-capabilities", { capabilities: [{ capability: "events", state: true }] });
    await monitor.execute("migrate", { uri: `exec:cat >${join(folder, "state")}` });
    await monitor.event("MIGRATION", ({ status }) => status === "completed");
  } catch (error) {
    if (ended !== undefined && ended !== "") throw nodeFailed({ message: "QEMU does not start", detail: ended });
    throw error;
  } finally {
    await monitor?.execute("quit").catch(() => {});
    monitor?.close();
  }
  await whole;
  for (const name of Object.values(sockets)) await rm(join(folder, name), { force: true });
}

/** Makes `root.qcow2` in `folder`, an image over `base`: reads of blocks that were never written go to `base`. */
export async function makeRoot(folder: string, base: string, format: "raw" | "qcow2"): Promise<void> {
  await mustRun("qemu-img", ["create", "-q", "-f", "qcow2", "-b", base, "-F", format, join(folder, "root.qcow2")]);
}
