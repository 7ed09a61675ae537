import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { RunTasks, Task } from "#base/tasks.ts";
import { formatBytes } from "#base/units.ts";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { debsOf, findMirror, openApt, type Apt } from "./apt.ts";
import { assetFolder, hashTexts, hashLayer, makeLayer } from "./assets.ts";
import { requireSpace } from "./prepare-host.ts";
import { boundCommand, mustRun } from "./run-command.ts";
import { withLock } from "./lock.ts";
import { busyboxPackages, imagePackages, nixPackages, servedPackages, suite, vmPackages } from "./debian-packages.ts";
import type { LabPlace } from "./place.ts";
import type { Images } from "./record.ts";
import { indexRepository } from "./repository.ts";
import { hashGolden, hashVmImage, makeGolden, makeVmImage } from "./vm/vm-image.ts";

/** The needs that decide which images are made. */
interface ImageNeeds {
  readonly withNix: boolean;
  readonly withVms: boolean;
  readonly withZfs: boolean;
  /** Debian releases of nodes besides `suite`. */
  readonly releases: readonly string[];
  /** Sorted names of packages that nodes may install besides `servedPackages`. */
  readonly packages: readonly string[];
}

/**
 * Finds the images that this version of the lab needs, and makes missing ones; all labs on this machine share them. Throws
 * `LAB_UNSUPPORTED`, `LAB_DISK_FULL`, `LAB_MIRROR_UNKNOWN`, `LAB_COMMAND_FAILED`, `LAB_BUSY`; `USAGE` for unknown packages.
 */
export async function prepareImages(
  place: LabPlace,
  {
    mirror,
    tasks,
    note,
    ...wanted
  }: ImageNeeds & { mirror: string | undefined; tasks: RunTasks; note: (line: string) => void },
): Promise<Images> {
  const { withNix, withVms, withZfs, packages: named } = wanted;
  if (withVms && process.arch !== "x64") throw noVms();
  const images = await nameImages(place, wanted);
  const { debian, layer, nix, busybox, packages, more, vm, golden, zfs } = images;
  const folders = [
    debian,
    layer,
    nix,
    busybox,
    packages,
    more,
    vm,
    golden,
    zfs,
    ...Object.values(images.releases),
  ].filter((folder) => folder !== "");
  const isZfsNamed = !withZfs || zfs !== "";
  if (isZfsNamed && folders.every((folder) => existsSync(folder))) return images;
  const work = async (): Promise<Images> => {
    const others = [
      "more-",
      "release-",
      ...(withNix ? [] : ["nix-"]),
      ...(withVms ? [] : ["vm-", "golden-"]),
      ...(withZfs && isZfsNamed ? [] : ["zfs-"]),
    ];
    await removeUnused(place, folders, others);
    await requireSpace(place.home, withVms);
    const site = await findMirror(mirror);
    let opened: Promise<Apt> | undefined;
    const apt = (): Promise<Apt> => (opened ??= openApt(place, site));
    const packagesTask = (folder: string, title: string, lists: readonly (readonly string[])[]): readonly Task[] =>
      makeTasks(folder, title, async (aside) =>
        makePackages(aside, { debian: images.debian, lists, apt: await apt() }),
      );
    await makeAside(images.layer, makeLayer);
    // Both at once: debootstrap mostly unpacks, on one processor.
    await tasks([
      ...makeTasks(images.debian, `making the Debian ${suite} image from ${site}`, (aside) =>
        makeDebian(aside, site, place),
      ),
      ...Object.entries(images.releases).flatMap(([release, folder]) =>
        makeTasks(folder, `making the Debian ${release} image from ${site}`, (aside) =>
          makeDebian(aside, site, place, { release }),
        ),
      ),
      ...makeTasks(images.busybox, "making the BusyBox image", async (aside) => makeBusybox(aside, await apt())),
    ]);
    await tasks(packagesTask(images.packages, "fetching the packages that nodes may install", servedPackages));
    if (withNix)
      await tasks(makeTasks(images.nix, "installing Nix over the Debian image", (aside) => makeNix(aside, images)));
    if (more !== "" && !existsSync(more)) {
      requirePackages(named, await (await apt()).names());
      const lists = named.map((name) => [name]);
      await tasks(packagesTask(more, `fetching ${named.join(", ")}`, lists));
    }
    if (!withVms) return images;
    const makeVm = async (folder: string, say: (progress: string) => void): Promise<void> => {
      const tree = join(folder, "tree");
      say(`making a larger Debian ${suite} image from ${site}`);
      await makeDebian(tree, site, place, { more: vmPackages });
      say("making a disk image of it");
      await makeVmImage(folder, tree, await apt());
    };
    await tasks(makeTasks(images.vm, "making the image of virtual machines", makeVm));
    const boot = (folder: string): Promise<void> => makeGolden(folder, images.vm);
    await tasks(makeTasks(images.golden, "booting the machine that virtual ones begin with", boot));
    if (!withZfs) return images;
    const whole = { ...images, zfs: await zfsOf(place, vm) };
    const kernel = await kernelOf(images.vm);
    const makeZfs = async (folder: string): Promise<void> =>
      makeZfsLayer(folder, { kernel, tree: images.debian, apt: await apt() });
    await tasks(makeTasks(whole.zfs, `building ZFS for the virtual machines' kernel ${kernel}`, makeZfs));
    return whole;
  };
  return withLock(place.home, "images", 900, work, () => note("waiting for another lab command that makes images"));
}

async function nameImages(
  place: LabPlace,
  { withNix, withVms, withZfs, packages: named, releases }: ImageNeeds,
): Promise<Images> {
  const { home } = place;
  const assets = assetFolder();
  const read = (name: string): Promise<string> => readFile(join(assets, name), "utf8");
  const treeOf = async (release: string): Promise<string> =>
    hashTexts(await read("make-image"), release, ...imagePackages);
  const debian = await treeOf(suite);
  const packages = hashTexts(debian, JSON.stringify(servedPackages));
  const vm = withVms ? join(home, "images", `vm-${hashTexts(debian, ...vmPackages, await hashVmImage())}`) : "";
  return {
    vm,
    // The kernel's version is known only from a machine's image.
    zfs: withZfs && existsSync(vm) ? await zfsOf(place, vm) : "",
    golden: withVms ? join(home, "images", `golden-${await hashGolden(vm)}`) : "",
    debian: join(home, "images", `debian-${debian}`),
    releases: Object.fromEntries(
      await Promise.all(
        releases.map(async (release) => [release, join(home, "images", `release-${release}-${await treeOf(release)}`)]),
      ),
    ) as Record<string, string>,
    layer: join(home, "images", `layer-${await hashLayer()}`),
    busybox: join(home, "images", `busybox-${hashTexts(await read("make-busybox"), ...busyboxPackages)}`),
    nix: withNix ? join(home, "images", `nix-${hashTexts(packages, await read("make-nix"), ...nixPackages)}`) : "",
    packages: join(home, "images", `packages-${packages}`),
    more: named.length === 0 ? "" : join(home, "images", `more-${hashTexts(debian, ...named)}`),
  };
}

/** The folder of the ZFS layer, which is named after its kernel, so that it outlives other changes of the machines' image. */
async function zfsOf({ home }: LabPlace, vm: string): Promise<string> {
  return join(home, "images", `zfs-${await kernelOf(vm)}-${await hashZfsLayer()}`);
}

/**
 * Makes a folder under another name and renames it when it is complete. `createFolder` would not do: half an image may hold mounts,
 * and only `removeUnused` stops at mounts.
 */
async function makeAside(folder: string, work: (aside: string) => Promise<unknown>): Promise<unknown> {
  if (existsSync(folder)) return undefined;
  const aside = `${folder}.new`;
  await mkdir(aside, { recursive: true, mode: 0o755 });
  const result = await work(aside);
  await mustRun("sync", ["-f", aside]); // whole also after a power cut of this machine
  await rename(aside, folder);
  return result;
}

/** The task that makes a folder; no task if the folder is there. */
function makeTasks(
  folder: string,
  title: string,
  work: (aside: string, say: (progress: string) => void) => Promise<unknown>,
): readonly Task[] {
  return existsSync(folder) ? [] : [{ title, work: (say) => makeAside(folder, (aside) => work(aside, say)) }];
}

function noVms(): KcoreError {
  return new KcoreError({
    code: "LAB_UNSUPPORTED",
    message: `the lab's virtual machines are x86-64, and this machine is ${process.arch}`,
    hint: "nodes of the other kinds run here",
  });
}

/** Removes half-made images and, while no lab is up, images of other versions of the lab. Whole images whose names begin with one of `others` stay. */
async function removeUnused({ home }: LabPlace, used: readonly string[], others: readonly string[]): Promise<void> {
  await mkdir(join(home, "images"), { recursive: true });
  const idle = (await readdir(join(home, "labs")).catch(() => [])).length === 0;
  for (const name of await readdir(join(home, "images"))) {
    const path = join(home, "images", name);
    const isUnused = idle && !used.includes(path) && !others.some((prefix) => name.startsWith(prefix));
    if (name.includes(".new") || isUnused) await mustRun("rm", ["-rf", "--one-file-system", path]);
  }
}

/** Makes Debian's tree with these packages; returns its size as text. */
async function makeDebian(
  folder: string,
  site: string,
  place: LabPlace,
  { release = suite, more = [] }: { readonly release?: string; readonly more?: readonly string[] } = {},
): Promise<string> {
  const args = [folder, release, site, join(place.home, "debs"), ...imagePackages, ...more];
  await mustRun(...boundCommand(join(assetFolder(), "make-image"), args));
  return formatBytes(Number((await mustRun("du", ["-sk", folder])).split("\t")[0]) * 1024);
}

async function makeNix(folder: string, { debian, packages }: Images): Promise<void> {
  await mustRun(...boundCommand(join(assetFolder(), "make-nix"), [debian, packages, folder, ...nixPackages]));
}

async function makeBusybox(folder: string, apt: Apt): Promise<void> {
  const debs = `${folder}.archive`;
  await apt.download({ packages: busyboxPackages, folder: debs });
  const wanted = (await debsOf(debs)).filter((path) => busyboxPackages.some((name) => path.includes(`/${name}_`)));
  await mustRun(...boundCommand(join(assetFolder(), "make-busybox"), [folder, ...wanted]));
  await rm(debs, { recursive: true });
}

function requirePackages(named: readonly string[], known: readonly string[]): void {
  const problems = named
    .filter((name) => !known.includes(name))
    .map((name) => ({
      code: "USAGE" as const,
      message: `Debian ${suite} has no package “${name}”`,
      ...omitUndefined({ hint: suggestHint(name, known) }),
    }));
  if (problems.length > 0) throw new KcoreError(problems);
}

/**
 * Makes a flat repository of these packages and their dependencies that a Debian node lacks; returns number and size as text. Each
 * list is resolved by itself.
 */
async function makePackages(
  folder: string,
  { debian, lists, apt }: { debian: string; lists: readonly (readonly string[])[]; apt: Apt },
): Promise<string> {
  const status = join(debian, "var/lib/dpkg/status");
  for (const packages of lists) await apt.download({ packages, folder, status });
  for (const name of ["partial", "lock"]) await rm(join(folder, name), { recursive: true, force: true });
  const { count, bytes } = await indexRepository(folder);
  return `${count} packages, ${formatBytes(bytes)}`;
}

/** ZFS's programs, and the packages that build its kernel modules, besides the kernel's own packages. */
const zfsPackages = ["zfs-dkms", "zfsutils-linux", "gcc", "make"] as const;

/** The version of the kernel that a machine's image has. */
async function kernelOf(image: string): Promise<string> {
  const listed = await mustRun("debugfs", ["-R", "ls -p /usr/lib/modules", join(image, "root.img")]);
  const names = listed.split("\n").map((line) => line.split("/")[5] ?? "");
  return names.find((name) => /^\d/.test(name)) ?? "";
}

/** A hash of the inputs of the ZFS layer, besides the kernel. */
async function hashZfsLayer(): Promise<string> {
  return hashTexts(...zfsPackages, await readFile(join(assetFolder(), "make-zfs"), "utf8"));
}

/** Builds ZFS for a kernel, which takes two minutes, and packs it into `zfs.tar` in `folder`. `tree`: the Debian image. */
async function makeZfsLayer(
  folder: string,
  { kernel, tree, apt }: { readonly kernel: string; readonly tree: string; readonly apt: Apt },
): Promise<void> {
  const archive = `${folder}.archive`;
  try {
    await apt.download({
      packages: [...zfsPackages, `linux-headers-${kernel}`, `linux-image-${kernel}`],
      folder: archive,
      status: join(tree, "var/lib/dpkg/status"),
    });
  } catch (cause) {
    throw new KcoreError(
      {
        code: "LAB_COMMAND_FAILED",
        message: `the packages to build ZFS cannot be had for the virtual machines' kernel ${kernel}`,
        detail: cause instanceof KcoreError ? cause.message : String(cause),
        hint: "Debian may have a newer kernel by now: remove images/vm-* below the lab's folder, and it is taken",
      },
      { cause },
    );
  }
  await mustRun(...boundCommand(join(assetFolder(), "make-zfs"), [tree, archive, kernel, folder]));
  await rm(archive, { recursive: true });
}
