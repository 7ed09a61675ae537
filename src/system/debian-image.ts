import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { durableJson, readCached } from "#base/durable-file.ts";
import { placeFile, hashFile } from "#base/file.ts";
import { run } from "#base/process.ts";
import { KcoreError } from "#errors/problem.ts";

/** Packages that a machine needs to start from its own disk, to be reached there, and to become a node. */
const basePackages = [
  "systemd-sysv",
  "udev",
  "dbus",
  "libpam-systemd",
  "openssh-server",
  "sudo",
  "iproute2",
  "iputils-ping",
  "procps",
  "kmod",
  "initramfs-tools",
  "zstd",
  "xz-utils",
  "ca-certificates",
  "e2fsprogs",
  "dosfstools",
  "gdisk",
  "lvm2",
  "cryptsetup-bin",
  "fdisk",
  "systemd-timesyncd",
  "systemd-resolved",
  "grub-common",
  "grub2-common",
  "grub-pc-bin", // one disk starts by either firmware
  "grub-efi-amd64-bin",
  "efibootmgr",
] as const;

/** The Debian to make an image of. */
export interface DebianChoice {
  /** The release: `bookworm`. */
  readonly suite: string;
  /** The URL of Debian's archive; empty: the archive that this machine's apt uses. */
  readonly mirror: string;
  /** The kernel's package, such as `linux-image-amd64`. */
  readonly kernel: string;
  /** Additional packages. */
  readonly packages: readonly string[];
}

/** A root filesystem as a file: a tar compressed by gzip, without any machine's identity. */
export interface SystemImage {
  readonly file: string;
  /** SHA-256 in lower-case hex. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
}

const FileMeasure = z.object({ sha256: z.string(), size: z.int() });

export interface BuildOptions {
  /** The folder in which images are kept. */
  readonly cache: string;
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
  /** The file with the keys of Debian's archive. */
  readonly keyring?: string;
}

/** The keyring of the package debian-archive-keyring. */
const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

/** Milliseconds after which an image is made anew: security updates come as packages. */
const longestAge = 30 * 24 * 3_600_000;

/** The exit code of make-debian where debootstrap is missing. */
const noDebootstrap = 69;

/** Milliseconds between two notes on debootstrap's progress. */
const noteEvery = 15_000;

/** The images that are being made, by their files: concurrent callers share one build. */
const building = new Map<string, Promise<SystemImage>>();

/**
 * The image of this Debian, made by debootstrap(8) on this machine. The image serves all nodes, for thirty days.
 * @throws KcoreError OS_IMAGE_FAILED
 */
export function debianImage(choice: DebianChoice, options: BuildOptions): Promise<SystemImage> {
  const script = fileURLToPath(new URL("./make-debian", import.meta.url));
  const file = imageFile(choice, options.cache);
  const known = building.get(file);
  if (known) return known;
  const image = findImage(file)
    .then((found) => found ?? makeImage(file, script, choice, options))
    .finally(() => building.delete(file));
  building.set(file, image);
  return image;
}

/** The image of this Debian in the cache; undefined if there is none, or if it is older than thirty days. */
export function cachedImage(choice: DebianChoice, cache: string): Promise<SystemImage | undefined> {
  return findImage(imageFile(choice, cache));
}

function imageFile(choice: DebianChoice, cache: string): string {
  const key = createHash("sha256")
    .update(JSON.stringify([choice, basePackages, "signed"]))
    .digest("hex")
    .slice(0, 16);
  return join(cache, `debian-${choice.suite}-${key}.tar.gz`);
}

/** The image in an operator's own file. @throws KcoreError OS_IMAGE_FAILED */
export async function imageFromFile(file: string): Promise<SystemImage> {
  try {
    return { file, ...(await measure(file)) };
  } catch (error) {
    throw failed(`${file} cannot be read: ${(error as Error).message}`);
  }
}

async function findImage(file: string): Promise<SystemImage | undefined> {
  const measured = await readCached(`${file}.json`, FileMeasure);
  if (!measured || (await isOlderThan(longestAge, file))) return undefined;
  const { size } = await stat(file).catch(() => ({ size: 0 }));
  return measured.size === size ? { file, ...measured } : undefined;
}

async function makeImage(
  file: string,
  script: string,
  { suite, mirror, kernel, packages }: DebianChoice,
  { cache, note, signal, keyring = debianKeyring }: BuildOptions,
): Promise<SystemImage> {
  if (!existsSync(keyring))
    throw failed(
      `${keyring} is not here: without it the packages of a mirror cannot be verified`,
      "apt-get install debian-archive-keyring",
    );
  await mkdir(cache, { recursive: true, mode: 0o700 });
  const from = mirror === "" ? await ownMirror(signal) : mirror;
  note(`making an image of Debian ${suite} from ${from} (some minutes, once)`);
  const aside = `${file}.${randomUUID()}`;
  try {
    // Ends with this process, children and mounts included.
    const isolated = "--pdeathsig KILL unshare -m -p -f --kill-child --mount-proc --propagation private".split(" ");
    const words = ["/bin/sh", script, aside, suite, from, [...basePackages, kernel, ...packages].join(","), keyring];
    await runProgram("setpriv", [...isolated, ...words], signal, (line) =>
      note(`making an image of Debian ${suite}: ${line}`),
    );
    const measured = await measure(aside);
    await placeFile(aside, file);
    await durableJson(`${file}.json`, FileMeasure, measured).write();
    // The image is whole, whether or not the others can go.
    await removeOldImages(cache).catch(() => undefined);
    return { file, ...measured };
  } finally {
    await rm(aside, { force: true });
    await rm(`${aside}.tree`, { recursive: true, force: true });
  }
}

/** Removes images that no run has used for at least thirty days, those of other choices included. */
async function removeOldImages(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const file = join(cache, name);
    if (!/^debian-.+-[0-9a-f]{16}\.tar\.gz$/.test(name) || !(await isOlderThan(2 * longestAge, file))) continue;
    await rm(file, { force: true });
    await rm(`${file}.json`, { force: true });
  }
}

/** Whether a file is older than `age` milliseconds, or gone. */
async function isOlderThan(age: number, file: string): Promise<boolean> {
  const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: 0 }));
  return Date.now() - mtimeMs > age;
}

/** The first URL from which this machine's apt gets packages. */
async function ownMirror(signal: AbortSignal): Promise<string> {
  const stdout = await runProgram("apt-get", ["indextargets", "--format", "$(SITE)", "Created-By: Packages"], signal);
  const [site] = stdout.split("\n").filter((line) => /^https?:/.test(line));
  if (site !== undefined) return site;
  throw failed(
    "this machine's apt does not say where Debian comes from",
    "--set os_mirror=https://deb.debian.org/debian",
  );
}

/** The stdout of a program; `note` gets a line of its stderr from time to time. @throws KcoreError OS_IMAGE_FAILED with the end of its stderr */
async function runProgram(
  name: string,
  args: readonly string[],
  signal: AbortSignal,
  note: (line: string) => void = () => undefined,
): Promise<string> {
  // An operator's PATH may lack root's programs.
  const path = [process.env["PATH"], "/usr/local/sbin:/usr/sbin:/sbin"].filter((part) => part !== undefined).join(":");
  let lastNote = Date.now();
  const { code, stdout, stderr } = await run([name, ...args], {
    env: { ...process.env, PATH: path, LC_ALL: "C" },
    signal,
    onOutput: (stream, chunk) => {
      const line = chunk.toString().trimEnd().split("\n").at(-1)?.replace(/^I: /, "") ?? "";
      if (stream === "out" || line === "" || Date.now() - lastNote < noteEvery) return;
      lastNote = Date.now();
      note(line);
    },
  });
  if (code === 0) return stdout;
  if (code === noDebootstrap) throw failed("debootstrap is not here", "apt-get install debootstrap");
  const hint =
    process.getuid?.() === 0 ? undefined : "debootstrap needs root: run kcore as root, or --set os_image=FILE";
  throw failed(`making an image of Debian failed: ${name} ended with exit code ${code}`, hint, stderr);
}

async function measure(file: string): Promise<z.infer<typeof FileMeasure>> {
  return { sha256: await hashFile(file), size: (await stat(file)).size };
}

function failed(message: string, hint?: string, detail?: string): KcoreError {
  return new KcoreError({
    code: "OS_IMAGE_FAILED",
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(detail === undefined ? {} : { detail: detail.trimEnd().split("\n").slice(-20).join("\n") }),
  });
}
