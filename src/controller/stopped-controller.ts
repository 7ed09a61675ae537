import { readdir, stat } from "node:fs/promises";
import { loadCredentials } from "#api/credentials.ts";
import type { Replaced, Replacement } from "#controller/store/restore.ts";
import { KcoreError } from "#errors/problem.ts";
import { ownKeyFiles, readControllerConfig, type ControllerConfig } from "./controller-config.ts";

export interface MaintainOptions {
  readonly configFile: string;
  readonly now: number;
  /** Reads and writes the configuration. */
  readonly yaml: { readonly parse: (text: string) => unknown; readonly print: (value: unknown) => string };
}

/** A controller on this machine: its configuration, its state's folder and owner, and its key files. */
export interface ControllerHome extends Replacement {
  readonly tls: ControllerConfig["tls"];
  readonly uid: number;
  readonly gid: number;
  readonly hasState: boolean;
  /** The configuration's `beginning` file, if it exists. */
  readonly beginning: string | undefined;
  /** The key files of the deployment. */
  readonly keyFiles: readonly string[];
  /** The key files that the controller made itself, in a folder of the state's owner. */
  readonly rotatedKeyFiles: readonly string[];
}

export async function readHome({ configFile, now, yaml: { parse } }: MaintainOptions): Promise<ControllerHome> {
  const config = await readControllerConfig({ configFile, parse });
  const { dbPath: folder, tls, subCa } = config;
  const id = config.replication.controllerId ?? (await loadCredentials(tls, "controller")).identity.id;
  const found = await stat(folder).catch((cause: NodeJS.ErrnoException) => {
    throw new KcoreError(
      {
        code: "FILE_UNREADABLE",
        message: `${folder} cannot be used: ${cause.message}`,
        hint: `dbPath in ${configFile} names this folder; deploy_node makes it`,
      },
      { cause },
    );
  });
  const hasState = (await readdir(folder)).some((name) =>
    /^(?:journal|snapshot|restoring|replacing|placing)-/.test(name),
  );
  const rotated = ownKeyFiles(config);
  const deployed = [tls.certFile, tls.keyFile, subCa.certFile, subCa.keyFile];
  const keyFiles = deployed.filter((path) => !rotated.includes(path));
  const { uid, gid } = found;
  return { folder, id, now, uid, gid, tls, hasState, beginning: config.beginning, keyFiles, rotatedKeyFiles: rotated };
}

/** Drops root's rights for those of the state's owner: the controller could not read files of root. */
export function becomeOwner({ uid, gid }: ControllerHome): void {
  if (process.getuid?.() !== 0 || uid === 0) return;
  process.setgroups?.([]);
  process.setgid?.(gid);
  process.setuid?.(uid);
}

/** The next step, as the last line for the operator. */
export const startHint = "next: systemctl start kcore-controller";

/** Lines about unreadable parts, and about the former state. */
export function notesOf({ aside, notes }: Replaced): readonly string[] {
  return [...notes, ...(aside === "" ? [] : [`the former state is kept in ${aside}`])];
}
