import { readFile, stat, symlink } from "node:fs/promises";
import { connect, isIPv6 } from "node:net";
import { basename, join } from "node:path";
import { createFile, replaceFile, hashFile } from "#base/file.ts";
import { replaceFolder } from "#base/folder.ts";
import { poll } from "#base/wait.ts";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import { debsOf } from "./apt.ts";
import { assetFolder } from "./assets.ts";
import { killAll, processesOf, startInGroup } from "./cgroup.ts";
import { mustRun } from "./run-command.ts";
import type { LabPlace } from "./place.ts";

/** The port of a lab's package server on the bridge's address. */
const port = 8642;

/** The line of a node's sources.list(5) for the lab's repository. */
export function sourcesLine(place: LabPlace): string {
  return `deb [trusted=yes] http://${serverEndpoint(place)}/ ./`;
}

function serverEndpoint({ gateway }: LabPlace): string {
  return `${isIPv6(gateway) ? `[${gateway}]` : gateway}:${port}`;
}

/**
 * Writes the index of a flat repository (deb822 stanzas of the .debs in `folder`), as apt-ftparchive(1) would. Returns their number
 * and bytes.
 */
export async function indexRepository(folder: string): Promise<{ count: number; bytes: number }> {
  const stanzas: string[] = [];
  let bytes = 0;
  for (const path of await debsOf(folder)) {
    const { size } = await stat(path);
    const control = (await mustRun("dpkg-deb", ["-f", path])).trimEnd();
    stanzas.push(`${control}\nFilename: ./${basename(path)}\nSize: ${size}\nSHA256: ${await hashFile(path)}\n`);
    bytes += size;
  }
  await replaceFile(join(folder, "Packages"), stanzas.join("\n"), { mode: 0o644 });
  return { count: stanzas.length, bytes };
}

/** Joins repositories to one folder of links and returns its path. Of packages with one file name, the last one's entry counts. */
async function joinRepositories(place: LabPlace, folders: readonly string[]): Promise<string> {
  const joined = join(place.folder, "packages");
  await replaceFolder(joined, async (fresh) => {
    const index = new Map<string, string>();
    for (const folder of folders) {
      for (const path of await debsOf(folder)) await symlink(path, join(fresh, basename(path))).catch(unlessThere);
      for (const stanza of (await readFile(join(folder, "Packages"), "utf8")).split(/\n{2,}/))
        index.set(/^Filename: .*$/m.exec(stanza)?.[0] ?? stanza, stanza.trim());
    }
    await createFile(join(fresh, "Packages"), `${[...index.values()].join("\n\n")}\n`);
  });
  return joined;
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}

/**
 * Serves the packages of these repositories to the lab's nodes, by a process in a cgroup of its own, bound to the bridge. A
 * running server goes on with the new repositories. Throws `LAB_COMMAND_FAILED`.
 */
export async function servePackages(place: LabPlace, repositories: readonly string[]): Promise<void> {
  const folder = await joinRepositories(place, repositories);
  const group = serverGroup(place);
  if ((await processesOf(group)).length > 0 && (await isAnswering(place))) return;
  await killAll(group);
  const server = [process.execPath, join(assetFolder(), "serve-packages.mjs"), place.gateway, String(port), folder];
  await startInGroup(group, server, join(place.folder, "packages.log"));
  if (await poll(() => isAnswering(place), { everyMs: 30, limitMs: 10_000 })) return;
  throw new KcoreError(
    {
      code: "LAB_COMMAND_FAILED",
      message: `the lab's package server does not answer on ${serverEndpoint(place)}`,
      hint: `look at ${join(place.folder, "packages.log")}`,
    },
    { exitCode: exitCodes.failed },
  );
}

/** The package server's cgroup. No node can have this name, because the names of nodes begin with a letter. */
function serverGroup({ group }: LabPlace): string {
  return `${group}/_packages`;
}

/** Whether the package server accepts a connection within half a second. */
function isAnswering({ gateway }: LabPlace): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: gateway, port, timeout: 500 });
    const finish = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket
      .on("connect", () => finish(true))
      .on("error", () => finish(false))
      .on("timeout", () => finish(false));
  });
}
