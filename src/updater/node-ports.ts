import { readdir, readFile, readlink, rename, rm, stat, statfs, symlink } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder, syncFolder } from "#base/folder.ts";
import { replaceFile, hashFile } from "#base/file.ts";
import { run } from "#base/process.ts";
import { wait } from "#base/wait.ts";
import type { Ports } from "./ports.ts";

/** NixOS has its programs in the first folder, Nix of a release tarball in the second. */
const programs =
  "/run/current-system/sw/bin:/nix/var/nix/profiles/default/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Nix would write to an existing home. */
const environment = { PATH: programs, HOME: "/homeless-shelter", LC_ALL: "C" };
/** The last bytes of stdout, and of stderr, that a program's end has. */
const tailBytes = 16_384;

/** The ports of this node; the signal ends programs, requests and pauses. */
export function nodePorts(signal: AbortSignal, download: Ports["download"]): Ports {
  return {
    async run(words, limitMs) {
      const options = { env: environment, cwd: "/", limitMs, signal, tailBytes, ownGroup: true };
      const { code, stopped, stdout, stderr } = await run(words, options);
      return { ...(stopped === undefined && { code }), stdout, stderr };
    },
    read: (path) => readFile(path, "utf8").catch(undefinedIfMissing),
    async replace(path, text) {
      await makeFolder(dirname(path), { mode: 0o700 });
      await replaceFile(path, text);
    },
    remove: (path) => rm(path, { force: true }),
    async move(from, to) {
      const wasMoved = await rename(from, to).then(() => true, undefinedIfMissing);
      if (wasMoved) await syncFolder(dirname(to));
      return wasMoved === true;
    },
    readLink: (path) => readlink(path).catch(undefinedIfMissing),
    async link(target, path) {
      const aside = `${path}.new`;
      await rm(aside, { force: true });
      await symlink(target, aside);
      await rename(aside, path);
    },
    list: async (folder) => (await readdir(folder).catch(undefinedIfMissing)) ?? [],
    sizeOf: async (path) => (await stat(path).catch(undefinedIfMissing))?.size,
    sha256Of: hashFile,
    async room(path) {
      const [{ bavail, bsize }, { dev }] = await Promise.all([statfs(path), stat(path)]);
      return { free: bavail * bsize, dev };
    },
    download,
    async ask(url, limitMs) {
      const limits = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
      const answer = await fetch(url, { signal: limits, redirect: "manual" });
      await answer.body?.cancel();
      return answer.status;
    },
    clock: Date.now,
    uptime: () => Number(process.hrtime.bigint() / 1_000_000n),
    bootId,
    sleep: (ms) => wait(ms, signal),
  };
}

/** Undefined for a path that is missing or no link. @throws any other error: the disk fails */
function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (!["ENOENT", "EINVAL", "ENOTDIR", "ESRCH"].includes(error.code ?? "")) throw error;
}

/**
 * The kernel's boot id with the start time of the first process (proc(5): starttime). In a container a confined unit reads the host's boot
 * id, which stays the same when the container starts again; the start time does not.
 */
async function bootId(): Promise<string> {
  const [boot, first] = await Promise.all([
    readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    readFile("/proc/1/stat", "utf8"),
  ]);
  const started = first.slice(first.lastIndexOf(")") + 2).split(" ")[19];
  return `${boot.trim()} ${started}`;
}
