import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readdir, readFile, readlink, rename, rm, statfs, symlink } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeFolder } from "#pki/make-folder.ts";
import { replaceFile, syncFolder } from "#pki/private-files.ts";
import type { BundleFile, Ended, Ports } from "./ports.ts";

/** NixOS has its programs in the first, Nix of a release tarball in the second. */
const programs =
  "/run/current-system/sw/bin:/nix/var/nix/profiles/default/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Nix makes things in a home if there is one; the updater has none. */
const environment = { PATH: programs, HOME: "/homeless-shelter", LC_ALL: "C" };
/** So much of what a program says is kept: its end. */
const keptChars = 16_384;

/** This node, until the signal. */
export function nodePorts(signal: AbortSignal): Ports {
  return {
    run: (words, limitMs) => run(words, limitMs, signal),
    read: (path) => readFile(path, "utf8").catch(nothing),
    async replace(path, text) {
      await makeFolder(dirname(path), { mode: 0o700 });
      await replaceFile(path, text);
    },
    remove: (path) => rm(path, { force: true }),
    async move(from, to) {
      const isThere = await rename(from, to).then(() => true, nothing);
      if (isThere) await syncFolder(dirname(to));
      return isThere === true;
    },
    readLink: (path) => readlink(path).catch(nothing),
    async link(target, path) {
      const aside = `${path}.new`;
      await rm(aside, { force: true });
      await symlink(target, aside);
      await rename(aside, path);
    },
    list: (folder) => readdir(folder),
    readBundle,
    async freeBytes(path) {
      const { bavail, bsize } = await statfs(path);
      return bavail * bsize;
    },
    async ask(url, limitMs) {
      const limits = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
      const answer = await fetch(url, { signal: limits, redirect: "manual" });
      await answer.body?.cancel();
      return answer.status;
    },
    clock: Date.now,
    uptime: () => Number(process.hrtime.bigint() / 1_000_000n),
    bootId,
    sleep: (ms) => sleep(ms, undefined, { signal }),
  };
}

/** For what is not there, or is no link; anything else is a disk that fails. */
function nothing(error: NodeJS.ErrnoException): undefined {
  if (!["ENOENT", "EINVAL", "ENOTDIR", "ESRCH"].includes(error.code ?? "")) throw error;
}

/** In a process group of its own, so that whatever it has started ends with it. */
async function run([program = "", ...words]: readonly string[], limitMs: number, signal: AbortSignal): Promise<Ended> {
  signal.throwIfAborted();
  const child = spawn(program, words, {
    env: environment,
    cwd: "/",
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const kill = (): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  };
  const timer = setTimeout(kill, Math.min(limitMs, 2 ** 31 - 1));
  signal.addEventListener("abort", kill);
  const said = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const)
    child[stream].setEncoding("utf8").on("data", (text: string) => {
      said[stream] = (said[stream] + text).slice(-keptChars);
    });
  try {
    const code = await new Promise<number | null>((resolve) => {
      child.on("error", (error) => {
        said.stderr = error.message;
        // As a shell says it of a program that is not there.
        resolve(127);
      });
      child.on("close", resolve);
    });
    signal.throwIfAborted();
    return { ...(code !== null && { code }), ...said };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", kill);
  }
}

/**
 * For a unit that may change nothing of the kernel, a container's boot id is its host's, which another start of the container does not change;
 * when its first process was started tells one from the other (proc(5): starttime).
 */
async function bootId(): Promise<string> {
  const [boot, first] = await Promise.all([
    readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    readFile("/proc/1/stat", "utf8"),
  ]);
  const started = first.slice(first.lastIndexOf(")") + 2).split(" ")[19];
  return `${boot.trim()} ${started}`;
}

async function readBundle(path: string): Promise<BundleFile | undefined> {
  const handle = await open(path).catch(nothing);
  if (!handle) return undefined;
  try {
    const { size } = await handle.stat();
    // gzip's last four bytes (RFC 1952): what is smaller is not gzip's.
    const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, Math.max(0, size - 4));
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
    return { size, sha256: hash.digest("hex"), unpacked: buffer.readUInt32LE(0) };
  } finally {
    await handle.close();
  }
}
