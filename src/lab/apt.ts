import { existsSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { replaceFile } from "#base/file.ts";
import { boundCommand, mustRun } from "./run-command.ts";
import { suite } from "./debian-packages.ts";
import type { LabPlace } from "./place.ts";

/**
 * The given mirror, else the one that this machine's apt uses for the nodes' Debian release. Throws `LAB_MIRROR_UNKNOWN`,
 * `LAB_COMMAND_FAILED`.
 */
export async function findMirror(given: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  let mirror = await readMirror();
  if (mirror === undefined) {
    await mustRun("apt-get", ["-q", "update"]); // apt knows a source's code name only from its list
    mirror = await readMirror();
  }
  if (mirror !== undefined) return mirror;
  throw new KcoreError({
    code: "LAB_MIRROR_UNKNOWN",
    message: `this machine's apt has no source for Debian ${suite}, from which the nodes are made`,
    hint: "name a mirror with --mirror URL",
  });
}

async function readMirror(): Promise<string | undefined> {
  const targets = ["--format", "$(SITE)", `Codename: ${suite}`, "Created-By: Packages"];
  const sites = await mustRun("apt-get", ["indextargets", ...targets]);
  return sites.split("\n").find((line) => /^https?:/.test(line));
}

/** An apt of the lab's own: this machine's settings and keys, but its own source, lists and archive. */
export type Apt = Awaited<ReturnType<typeof openApt>>;

/** Prepares the lab's own apt with fresh lists from `mirror`. Throws `LAB_COMMAND_FAILED`, as the returned functions do. */
export async function openApt({ home }: LabPlace, mirror: string) {
  const root = join(home, "apt");
  const emptyStatus = join(root, "status");
  await mkdir(join(root, "lists", "partial"), { recursive: true });
  await mkdir(join(root, "archives", "partial"), { recursive: true });
  await replaceFile(
    join(root, "sources.list"),
    `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror} ${suite} main contrib\n`,
  );
  if (!existsSync(emptyStatus)) await replaceFile(emptyStatus, "");
  const settings = Object.entries({
    "Dir::Etc::sourcelist": join(root, "sources.list"),
    "Dir::Etc::sourceparts": "-",
    "Dir::Etc::preferencesparts": "-",
    "Dir::State::lists": join(root, "lists"),
    "Dir::Cache": root,
    "Dir::Cache::archives": join(root, "archives"),
    "APT::Sandbox::User": "root", // _apt may not enter the lab's folder
    "Acquire::Languages": "none",
    "Debug::NoLocking": "1", // the lab has its own lock
  }).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const call = (program: string, status: string, ...args: string[]): Promise<string> =>
    mustRun(...boundCommand(program, ["-q", ...settings, "-o", `Dir::State::status=${status}`, ...args]));
  const apt = (status: string, ...args: string[]): Promise<string> => call("apt-get", status, "-y", ...args);
  await apt(emptyStatus, "update");
  return {
    /** The names of all packages that the mirror has. */
    names: async (): Promise<readonly string[]> => (await call("apt-cache", emptyStatus, "pkgnames")).split("\n"),
    /** Downloads packages, with the dependencies that a machine with this dpkg status lacks, into `folder`. */
    download: async ({
      packages,
      folder,
      status,
    }: {
      packages: readonly string[];
      folder: string;
      status?: string;
    }) => {
      await mkdir(join(folder, "partial"), { recursive: true });
      const archive = ["-o", `Dir::Cache::archives=${folder}`, "--no-install-recommends", "--download-only"];
      await apt(status ?? emptyStatus, ...archive, "install", ...packages);
    },
  };
}

/** The .deb files of a folder, sorted. */
export async function debsOf(folder: string): Promise<string[]> {
  return (await readdir(folder))
    .filter((name) => name.endsWith(".deb"))
    .sort()
    .map((name) => join(folder, name));
}
