import { createHash } from "node:crypto";
import { readSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { Blob } from "#engine/step/blob.ts";
import { remoteBlob, type Fetch, type RemoteContent } from "#engine/step/remote.ts";
import { findIn, type Folder } from "#engine/project/folders.ts";
import { withRegularFile } from "#engine/yaml/regular-file.ts";

/** Files of the project or the shipped ones, and contents fetched by their URLs, as blobs. */
export interface Files {
  /**
   * The bytes of a file, relative to the project (then to the shipped files), or absolute. Read once for its hash,
   * and again only when a node lacks it.
   * @throws KcoreError FILE_UNREADABLE, PROJECT_NOT_TRUSTED
   */
  blob(path: string): Blob;
  /** A content that the bastion fetches when a node asks for it. */
  remote(content: RemoteContent): Blob;
}

/** Finds files in the first folder that has them, and hashes each once. `fetch` is absent for a check, which sends nothing. */
export function openStateFiles(folders: readonly Folder[], fetch: Fetch = fetchNothing): Files {
  const known = new Map<string, Blob>();
  return {
    blob: (path) => {
      const blob = known.get(path) ?? blobOfFile(folders, path);
      known.set(path, blob);
      return blob;
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

/** Bytes: files up to this size stay in memory, since modules parse keys and certificates. */
const smallLimit = 64 << 10;

function hashOpenFile(file: number): { sha256: string; size: number; bytes?: Uint8Array } {
  const hash = createHash("sha256");
  const chunk = Buffer.alloc(1 << 20);
  let size = 0;
  for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
    hash.update(chunk.subarray(0, read));
    size += read;
  }
  // One read gives all of a small regular file, so the chunk still holds it.
  return {
    sha256: hash.digest("hex"),
    size,
    ...(size <= smallLimit && { bytes: Buffer.from(chunk.subarray(0, size)) }),
  };
}
