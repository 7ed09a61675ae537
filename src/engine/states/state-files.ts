import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isAbsolute } from "node:path";
import type { FolderEntry } from "#engine/step/define.ts";
import { KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { Blob } from "#engine/step/blob.ts";
import { remoteBlob, type Fetch, type RemoteContent } from "#engine/step/remote.ts";
import { findIn, type Folder } from "#engine/project/folders.ts";
import { withRegularFile } from "#engine/yaml/regular-file.ts";
import { hashOpenFile, readSourceFolder } from "./source-folder.ts";

/** Files of the project or the shipped ones, and contents fetched by their URLs, as blobs. */
export interface Files {
  /**
   * The bytes of a file, relative to the project (then to the shipped files), or absolute. Read once for its hash,
   * and again only when a node lacks it.
   * @throws KcoreError FILE_UNREADABLE, PROJECT_NOT_TRUSTED
   */
  blob(path: string): Blob;
  /** The entries below a folder that no glob matches, read once. @throws KcoreError as {@link readSourceFolder} */
  folder(path: string, exclude: readonly string[]): readonly FolderEntry[];
  /** A content that the bastion fetches when a node asks for it. */
  remote(content: RemoteContent): Blob;
}

/** Finds files and folders in the first folder that has them, and hashes each file once. `fetch` is absent for a check, which sends nothing. */
export function openStateFiles(folders: readonly Folder[], fetch: Fetch = fetchNothing): Files {
  const known = new Map<string, Blob>();
  const lists = new Map<string, readonly FolderEntry[]>();
  return {
    blob: (path) => {
      const blob = known.get(path) ?? blobOfFile(folders, path);
      known.set(path, blob);
      return blob;
    },
    folder: (path, exclude) => {
      const key = JSON.stringify([path, exclude]);
      const list = lists.get(key) ?? readSourceFolder(folders, path, exclude);
      lists.set(key, list);
      return list;
    },
    remote: (content) => remoteBlob(content, fetch),
  };
}

function fetchNothing({ label }: RemoteContent): Promise<never> {
  return Promise.reject(new Error(`nothing fetches ${label} here`));
}

function blobOfFile(folders: readonly Folder[], name: string): Blob {
  const found = isAbsolute(name) ? { path: name, folder: folders[0] } : findIn(folders, name);
  if (found === undefined)
    throw new KcoreError({
      code: "FILE_UNREADABLE",
      message: `no file “${name}” in the project`,
      hint: "the path is relative to the project's folder and must not leave it",
    });
  const { path, folder } = found;
  const { sha256, size, bytes } = withRegularFile(path, { name, check: folder?.check }, hashOpenFile);
  const read = async (): Promise<Uint8Array> => {
    const bytes = await readFile(path);
    if (createHash("sha256").update(bytes).digest("hex") === sha256) return bytes;
    throw new KcoreError({
      code: "FILE_UNREADABLE",
      message: `${name} changed while the run went on`,
      hint: "run again",
    });
  };
  return new Blob({ sha256, size, sensitive: false, read, label: name, ...omitUndefined({ bytes }) });
}
