import { type FetchRequest, Blob, fileBlob } from "./blob.ts";
import type { Secret } from "./secret.ts";

/** A file to download, identified by its hash. */
export interface RemoteContent {
  readonly url: string | Secret;
  readonly sha256: string;
  /** The content's name in views. */
  readonly label: string;
  /** Headers for the URL's own server. */
  readonly headers: Readonly<Record<string, string | Secret>>;
  /** Absolute path of the CA to trust; absent: the default CAs of the program that fetches. */
  readonly caFile?: string | undefined;
  /** A proxy; absent: the proxy of the environment. */
  readonly proxy?: string | undefined;
}

/**
 * Fetches a content to the bastion, unless the bastion has it, and resolves with the file.
 * @throws KcoreError DOWNLOAD_FAILED, DOWNLOAD_DIFFERS; the reason of the request's signal
 */
export type Fetch = (
  content: RemoteContent,
  request: FetchRequest,
) => Promise<{ readonly file: string; readonly sha256: string; readonly size: number }>;

/**
 * The name of the file that a node gets instead of a content that could not be fetched: the error's code in the first
 * line, then its text.
 */
export function refusalName(name: string): string {
  return `${name}.refused`;
}

/** A blob of a content that the bastion fetches when the first node asks for the blob. */
export function remoteBlob(content: RemoteContent, fetch: Fetch): Blob {
  const { sha256, label } = content;
  const fetchBlob = async (request: FetchRequest): Promise<Blob> => fileBlob(await fetch(content, request), label);
  return new Blob({
    sha256,
    size: 0,
    sensitive: false,
    label,
    fetch: fetchBlob,
    read: async () => (await fetchBlob({ signal: new AbortController().signal, onProgress: () => undefined })).read(),
  });
}
